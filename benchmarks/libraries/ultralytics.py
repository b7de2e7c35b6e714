"""YOLOv8 trained three epochs by its Trainer on drawn squares, validated, read back from its checkpoint; boxes that it predicts"""

import os

import numpy as np

os.environ |= {"YOLO_CONFIG_DIR": os.path.abspath("settings"), "YOLO_VERBOSE": "False"}  # its logs have times in them
SIZE, KINDS = 96, ("red", "green")


def draw(part, number, chance):
    """Pictures with one to three squares each, and where these are."""
    import cv2
    for folder in ("images", "labels"):
        os.makedirs(f"data/{folder}/{part}")
    for i in range(number):
        picture, lines = (chance.random((SIZE, SIZE, 3)) * 60).astype("uint8"), []
        for _ in range(chance.integers(1, 4)):
            kind, width = chance.integers(0, 2), chance.integers(15, 35)
            x, y = chance.integers(0, SIZE - width, 2)
            picture[y:y + width, x:x + width, 2 - kind] = 230
            lines.append(f"{kind} {(x + width / 2) / SIZE} {(y + width / 2) / SIZE} {width / SIZE} {width / SIZE}")
        cv2.imwrite(f"data/images/{part}/{i}.png", picture)
        with open(f"data/labels/{part}/{i}.txt", "w") as f:
            f.write("\n".join(lines))


chance = np.random.default_rng(0)
draw("train", 24, chance)
draw("val", 8, chance)
with open("data/squares.yaml", "w") as f:
    f.write(f"path: {os.path.abspath('data')}\ntrain: images/train\nval: images/val\nnames: [{', '.join(KINDS)}]\n")

from ultralytics import YOLO  # noqa: E402  (it reads YOLO_CONFIG_DIR)

model = YOLO("yolov8n.yaml", verbose=False)
result = model.train(data="data/squares.yaml", epochs=3, imgsz=SIZE, batch=4, device="cpu", workers=0, amp=False, plots=False, seed=0, optimizer="SGD",
                     project=os.path.abspath("runs"), name="squares", verbose=False)
with open("runs/squares/results.csv") as f:
    header, *rows = [line.strip().split(",") for line in f]
for row in rows:
    print({k.strip(): float(f"{float(v):.4g}") for k, v in zip(header, row) if k.strip() != "time"})
print({k: round(float(v), 4) for k, v in result.results_dict.items()})
boxes = YOLO("runs/squares/weights/last.pt").predict("data/images/val/0.png", imgsz=SIZE, conf=0.0005, verbose=False)[0].boxes
print(len(boxes), boxes.cls[:4].tolist(), [round(x, 4) for x in boxes.conf[:4].tolist()])
