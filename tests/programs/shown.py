"""What programs of several processes print."""
import torch.distributed as dist


def show(*values):
    """By rank 0 alone."""
    if dist.get_rank() == 0:
        print(*values, flush=True)


def rounded(tensors, digits=4):
    """The first numbers of each, without -0."""
    return [[f"{round(x, digits) + 0.0:.{digits}f}" for x in t.flatten().tolist()[:4]] for t in tensors]
