"""torch.hub. The same under torch and torchlike."""
import hashlib
import os
import pathlib
import tempfile

import torch
import torch.hub
from torch.hub import HASH_REGEX, urlparse  # noqa: F401  (copied loaders import them)

os.chdir(tempfile.mkdtemp())
os.environ["TORCH_HOME"] = os.getcwd()
print(os.path.relpath(torch.hub.get_dir()))
torch.save({"a": torch.ones(2)}, "model.pt")
digest = hashlib.sha256(open("model.pt", "rb").read()).hexdigest()
url = pathlib.Path("model.pt").absolute().as_uri()
for check, name in ((False, None), (True, "m-" + digest[:8] + ".pt"), (True, "n-0123.pt")):
    try:
        loaded = torch.hub.load_state_dict_from_url(url, progress=False, check_hash=check, file_name=name)
        print(loaded["a"].tolist())
    except RuntimeError as error:
        print(str(error).replace(digest, "DIGEST"))
print(sorted(os.listdir("hub/checkpoints")))
os.remove("model.pt")
print(torch.hub.load_state_dict_from_url(url, progress=False)["a"].tolist())
try:
    torch.hub.download_url_to_file(url, "other", progress=False)
except OSError as error:
    print(type(error).__name__)
torch.hub.set_dir("elsewhere")
print(torch.hub.get_dir(), sorted(os.listdir(".")))
