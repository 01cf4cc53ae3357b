// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include OKTOPK_HEADER
#include OKTOPK_HEADER

#if defined(MPI_VERSION) && !defined(OKTOPK_HEADERS_OF_mpi)
#error "includes mpi.h, which only oktopk/mpi.hpp and what lies in oktopk/mpi may"
#endif
#if defined(NCCL_MAJOR) && !defined(OKTOPK_HEADERS_OF_nccl)
#error "includes nccl.h, which only oktopk/nccl.hpp may"
#endif
#if defined(TORCH_CHECK) && !defined(OKTOPK_HEADERS_OF_torch)
#error "includes torch, which only oktopk/torch.hpp and what lies in oktopk/torch may"
#endif
#if defined(XXH_VERSION_NUMBER) && !defined(OKTOPK_HEADERS_OF_xxhash)
#error "includes xxhash.h, which only oktopk/comm/checked.hpp may"
#endif
#if defined(ZFP_VERSION) && !defined(OKTOPK_HEADERS_OF_zfp)
#error "includes zfp.h, which only oktopk/codec/zfp.hpp and oktopk/catalogue/with_zfp.hpp may"
#endif
