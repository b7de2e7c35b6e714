"""Small public functions that stand alone: switches that only tell what was set, batch norms without statistics; against real torch."""
from same import same


@same
def test_multithreading(torch):
    grad = torch.autograd
    found = [grad.is_multithreading_enabled()]
    with grad.set_multithreading_enabled(False):
        found.append(grad.is_multithreading_enabled())
        with grad.set_multithreading_enabled(True):
            found.append(grad.is_multithreading_enabled())
        found.append(grad.is_multithreading_enabled())

    @grad.set_multithreading_enabled(False)
    def inside():
        return grad.is_multithreading_enabled()
    return found, inside(), grad.is_multithreading_enabled()


@same
def test_batch_norms_without_statistics(torch):
    nn = torch.nn
    net = nn.Sequential(nn.BatchNorm1d(2), nn.Sequential(nn.BatchNorm2d(2)), nn.SyncBatchNorm(2), nn.InstanceNorm1d(2, track_running_stats=True))
    made = torch.func.replace_all_batch_norm_modules_(net)
    x = torch.randn(3, 2)
    return made is net, str(net), sorted(net.state_dict()), net[0](x), net.eval()[0](x), net[0].running_mean
