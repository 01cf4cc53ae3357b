# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The DDP module of a model, wherever a framework has put it."""

import gc
import sys
import weakref

import torch
from torch.nn.parallel import DistributedDataParallel

from ._engine import Error

SHARDED = ("the module is sharded (FSDP), and a state is for DDP: average between replicas of FSDP2, attach(model, scheme, "
           "replicas=GROUP), where GROUP has the ranks with the same shard")


def _replicate():
    """The module of torch's composable `replicate` over DDP, where the program has loaded it; None where it has not."""
    return sys.modules.get("torch.distributed._composable.replicate")


def _is_replicated(module):
    return _replicate() is not None and isinstance(module, getattr(_replicate(), "DDP", ()))


def _one_of(model, is_one):
    """The module of the model that reduces all of its parameters, of those for which `is_one`; None where there is none."""
    if not isinstance(model, torch.nn.Module):
        raise Error(f"a state is made of a DDP module, and not of {type(model).__name__}")
    if is_one(model):
        return model
    inside = [each for each in model.modules() if is_one(each)]
    of_first = set(inside[0].parameters()) if inside else ()
    if inside and (len(inside) > 1 or any(each.requires_grad and each not in of_first for each in model.parameters())):
        raise Error(f"the model has {len(inside)} DDP modules in it, and parameters that the first of them does not reduce: make a state "
                    "of each DDP module")
    return inside[0] if inside else None


def inside(model):
    """The DDP module that the model is, or that it wraps; None where there is none."""
    return _one_of(model, lambda each: isinstance(each, DistributedDataParallel))


def objects(kind):
    """Those of the program that are of a class or of one that is derived from it. There may be a million objects, of some
    thousand types."""
    every = gc.get_objects()
    kinds = {each for each in set(map(type, every)) if issubclass(each, kind)}
    return [each for each in every if type(each) in kinds] if kinds else []


def around(parameters):
    """The DDP modules that have one of the parameters, wherever in the program they are."""
    return [each for each in objects(DistributedDataParallel) if any(one in parameters for one in each.module.parameters())]


def is_sharded(model):
    return any(base.__name__ in ("FullyShardedDataParallel", "FSDPModule") for each in model.modules() for base in type(each).__mro__)


def to_attach(model):
    """What a state is made of, what its hook is registered at, and the process group of the state, None for that of DDP; an
    Error where there is no such module, or more than one."""
    ddp = inside(model)
    if ddp is not None:
        return ddp, ddp, None
    if is_sharded(model):
        raise Error(SHARDED)
    replicated = _one_of(model, _is_replicated)
    if replicated is not None:
        how = _replicate().replicate.state(replicated)
        if how.has_initialized:  # its own register_comm_hook is for before the first forward pass, and later does nothing
            return replicated, how._ddp, how._ddp.process_group  # pylint: disable=protected-access
        how = how._init_kwargs  # pylint: disable=protected-access
        mesh = how.get("device_mesh")
        return replicated, replicated, how.get("process_group") if mesh is None else mesh.get_group()
    is_wrapped = ", but there is one around it" if around(set(model.parameters())) else ""
    raise Error(f"{type(model).__name__} has no DDP module in it{is_wrapped}: attach to what wraps it, as DistributedDataParallel(model), "
                "what Accelerate's prepare or Fabric's setup gives, trainer.strategy.model of Lightning or trainer.model_wrapped of "
                "Transformers")


def sharded(model):
    """The modules of FSDP2 in a model, with their names; an Error where their gradients are not to be averaged between replicas."""
    if not isinstance(model, torch.nn.Module):
        raise Error(f"replicas= is for a module of FSDP2, and this is {type(model).__name__}")
    found = [(name, each) for name, each in model.named_modules() if hasattr(each, "set_all_reduce_hook")]
    if not found:
        raise Error(f"{type(model).__name__} has no module in it that fully_shard was applied to: replicas= is for FSDP2")
    for name, each in found:
        of = each._get_fsdp_state()  # pylint: disable=protected-access
        groups = getattr(of, "_fsdp_param_groups", None) or [getattr(of, "_fsdp_param_group", None)]
        if any(getattr(each, "_is_hsdp", False) for each in groups):
            raise Error(f"fully_shard has a mesh of two dimensions for {name or 'the model'}, over which torch sums before the hook is "
                        "called: give it the one within a replica alone")
    return found


def register(module, state, hook):
    try:
        module.register_comm_hook(state, hook)
    except RuntimeError as wrong:
        raise Error(f"the hook cannot be registered, for a DDP module takes one, once: {wrong}") from None


class RegistersForLightning:
    """A hook of a LightningModule before its first forward pass: registers a state that was given to Lightning's strategy as
    ddp_comm_state, where Lightning does not do so, as on CPUs."""

    def __init__(self, state=None):
        self._state = (lambda: None) if state is None else weakref.ref(state)

    def __reduce__(self):  # a module that is copied or pickled has another state, or none
        return RegistersForLightning, ()

    def __call__(self, module, _inputs):
        state = self._state()
        strategy = getattr(getattr(module, "_trainer", None), "strategy", None)
        if state is None or getattr(strategy, "_ddp_comm_state", None) is not state:
            return
        self._state = lambda: None
        ddp = strategy.model
        if strategy.root_device.type == "cuda" or not isinstance(ddp, DistributedDataParallel) or getattr(ddp, "_comm_hooks", ()):
            return
        hook, wrapper = strategy._ddp_comm_hook, strategy._ddp_comm_wrapper  # pylint: disable=protected-access
        if hook is not None:
            register(ddp, state, hook if wrapper is None else wrapper(hook))
