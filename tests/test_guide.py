"""The examples of docs/guide.md, as a reader would type them one after the other."""
import doctest
import re
from pathlib import Path

GUIDE = Path(__file__).resolve().parent.parent / "docs" / "guide.md"


def test_the_guide_shows_what_its_examples_print():
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    runner, names, said = doctest.DocTestRunner(verbose=False), {}, []
    for n, block in enumerate(blocks, 1):
        example = doctest.DocTestParser().get_doctest(block, names, f"example {n}", str(GUIDE), 0)
        runner.run(example, out=said.append, clear_globs=False)
        names = example.globs
    assert len(blocks) >= 7 and runner.failures == 0, "".join(said)
