"""torch.distributed.launch: the older name of `run`, which also gives the program `--local-rank` unless told `--use-env`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from . import run


def main(args: Sequence[str] | None = None) -> None:
    options = run.get_args_parser()
    options.add_argument("--use-env", "--use_env", action="store_true")
    given = options.parse_args(args)
    sys.exit(run.run(given, local_rank_argument=not given.use_env))


if __name__ == "__main__":
    main()
