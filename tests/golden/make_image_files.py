"""Images of each format and what Pillow and pydicom read from them: tests/golden/image_files/*,
with pixels.txt and numbers.txt.

    pip install numpy Pillow pydicom && python make_image_files.py

A case is a line "NAME CHANNELS H W", then the values of each pixel. In pixels.txt they are bytes:
what Pillow converts to L, RGB or RGBA, or what pydicom shows through the window; of 16 bits the
upper 8. Transparent pixels are blended with white where CHANNELS is 1 or 3. In numbers.txt they are
the file's own: of 16 bits as Pillow reads them, of DICOM after pydicom's rescale. Images are turned
by Pillow's exif_transpose.
"""
import io
import pathlib
import platform
import struct

import numpy as np
import PIL
import pydicom
from PIL import Image, ImageOps
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.pixels import apply_modality_lut, apply_voi_lut
from pydicom.uid import (ExplicitVRLittleEndian, ImplicitVRLittleEndian, JPEGBaseline8Bit,
                         SecondaryCaptureImageStorage, generate_uid)

OUT = pathlib.Path(__file__).resolve().parent / "image_files"
H, W = 5, 7
RNG = np.random.default_rng(7)
GREY = RNG.integers(0, 256, (H, W), dtype=np.uint8)
RGB = RNG.integers(0, 256, (H, W, 3), dtype=np.uint8)
RGBA = RNG.integers(0, 256, (H, W, 4), dtype=np.uint8)
DEEP = RNG.integers(0, 65536, (H, W), dtype=np.uint16)
FEW = RNG.integers(0, 4, (H, W), dtype=np.uint8)      # indices of a palette
COLOURS = [250, 10, 20, 30, 240, 50, 60, 70, 230, 1, 2, 3]


def paletted():
    image = Image.fromarray(FEW, "P")
    image.putpalette(COLOURS)
    return image


def exif(orientation):
    made = Image.Exif()
    made[0x0112] = orientation
    return made


def pillow_files():
    """Files and, where Pillow does not write them, their bytes."""
    big = Image.fromarray(RGB).resize((16, 8))
    yield "grey.bmp", Image.fromarray(GREY), {}
    yield "rgb.bmp", Image.fromarray(RGB), {}
    yield "rgba.bmp", Image.fromarray(RGBA), {}
    yield "palette.bmp", paletted(), {}
    yield "bits.bmp", Image.fromarray(GREY > 127), {}
    yield "grey.gif", Image.fromarray(GREY), {}
    yield "palette.gif", paletted(), {}
    yield "clear.gif", paletted(), {"transparency": 2}
    yield "interlaced.gif", Image.fromarray(np.tile(FEW, (5, 9)) * 80), {"interlace": 1}
    yield "frames.gif", paletted(), {"save_all": True, "append_images": [Image.new("L", (W, H))]}
    yield "long.gif", Image.fromarray(RNG.integers(0, 256, (90, 70), dtype=np.uint8)), {}
    yield "deep.png", Image.fromarray(DEEP), {}
    yield "palette.png", paletted(), {"transparency": 1}
    yield "grey.pgm", Image.fromarray(GREY), {}
    yield "deep.pgm", Image.fromarray(DEEP), {}
    yield "rgb.ppm", Image.fromarray(RGB), {}
    yield "bits.pbm", Image.fromarray(GREY > 127), {}
    for orientation in range(1, 9):
        yield "turned%d.jpg" % orientation, big, {"exif": exif(orientation), "quality": 100,
                                                  "subsampling": 0}
    yield "turned6.png", Image.fromarray(RGB), {"exif": exif(6)}


def text_files():
    yield "text.pgm", b"P2 # a comment\n3 2\n# another\n100\n0 50 100\n7 8  9\n"
    yield "text.ppm", b"P3\n2 1 255\n255 0 7\n1 2 3"
    yield "text.pbm", b"P1\n4 2\n01 10\n1 0 0 1"
    yield "small.pgm", b"P5 3 2 15 " + bytes([0, 1, 7, 8, 14, 15])
    yield "middle.pgm", b"P5 2 1 4095 " + struct.pack(">2H", 17, 4095)


def over_white(image):
    """As image.h says: blended with white."""
    pixels = np.asarray(image.convert("RGBA")).astype(int)
    alpha = pixels[..., 3:]
    return (pixels[..., :3] * alpha + 255 * (255 - alpha) + 127) // 255


def write(file, name, values):
    values = np.asarray(values)
    values = values[..., None] if values.ndim == 2 else values
    print(name, values.shape[2], *values.shape[:2], file=file)
    print(*("%.9g" % value for value in values.ravel()), file=file)


def write_pillow(name, pixels, numbers):
    image = ImageOps.exif_transpose(Image.open(OUT / name))
    image.load()
    if image.mode.startswith("I"):
        values = np.asarray(image).astype(int)
        write(pixels, name, values >> 8)
        write(numbers, name, values)
        return
    clear = "transparency" in image.info or image.mode == "RGBA"
    if clear:
        write(pixels, name, np.asarray(image.convert("RGBA")))
    if image.width * image.height < 2000:
        write(pixels, name, over_white(image) if clear else np.asarray(image.convert("RGB")))
    if image.mode in ("L", "1"):
        write(pixels, name, np.asarray(image.convert("L")))
        write(numbers, name, np.asarray(image.convert("L")))


def dicom(name, values, syntax=ExplicitVRLittleEndian, photometric="MONOCHROME2", stored=None,
          **others):
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=[name])
    meta.TransferSyntaxUID = syntax
    made = FileDataset(name, {}, file_meta=meta, preamble=bytes(128))
    made.SOPClassUID, made.SOPInstanceUID = SecondaryCaptureImageStorage, \
        meta.MediaStorageSOPInstanceUID
    made.PatientName = "Made^Up"
    item = pydicom.Dataset()
    item.Rows = 999    # of another image, in a sequence
    made.ReferencedImageSequence = pydicom.Sequence([item, item])
    made["ReferencedImageSequence"].is_undefined_length = True
    bits = values.dtype.itemsize * 8
    made.Rows, made.Columns = values.shape[:2]
    made.SamplesPerPixel = 3 if values.ndim == 3 else 1
    if values.ndim == 3:
        made.PlanarConfiguration = others.pop("planar", 0)
    made.PhotometricInterpretation = photometric
    made.BitsAllocated, made.BitsStored = bits, stored or bits
    made.HighBit = made.BitsStored - 1
    made.PixelRepresentation = int(values.dtype.kind == "i")
    for key, value in others.items():
        setattr(made, key, value)
    if syntax == JPEGBaseline8Bit:
        to = io.BytesIO()
        Image.fromarray(values).save(to, "JPEG", quality=100, subsampling=0)
        made.PixelData = encapsulate([to.getvalue()])
        made["PixelData"].is_undefined_length = True
    else:
        planes = values.transpose(2, 0, 1) if made.get("PlanarConfiguration") else values
        data = planes.tobytes()
        made.PixelData = data + bytes(len(data) % 2)
    made["PixelData"].VR = "OB" if bits == 8 else "OW"
    made.save_as(OUT / name, enforce_file_format=True)


def dicom_files():
    ct = RNG.integers(-1024, 2000, (H, W)).astype(np.int16)
    ct12 = RNG.integers(0, 4096, (H, W)).astype(np.uint16)
    window = {"WindowCenter": "40", "WindowWidth": "400"}
    rescale = {"RescaleSlope": "1.5", "RescaleIntercept": "-1024"}
    dicom("ct.dcm", ct, **window, RescaleSlope="1", RescaleIntercept="0")
    dicom("scaled.dcm", ct12, stored=12, WindowCenter=[300, 40], WindowWidth=[1500, 80], **rescale)
    dicom("implicit.dcm", ct, ImplicitVRLittleEndian, **window, **rescale)
    dicom("bright.dcm", GREY, photometric="MONOCHROME1", WindowCenter="128", WindowWidth="256")
    dicom("open.dcm", ct12, stored=12)
    dicom("rgb.dcm", RGB, photometric="RGB")
    dicom("planes.dcm", RGB, photometric="RGB", planar=1)
    dicom("grey_jpeg.dcm", GREY, JPEGBaseline8Bit, WindowCenter="128", WindowWidth="256")
    dicom("rgb_jpeg.dcm", RGB, JPEGBaseline8Bit, photometric="YBR_FULL")


def jpeg_values(made):
    frame = next(pydicom.encaps.generate_frames(made.PixelData, number_of_frames=1))
    return np.asarray(Image.open(io.BytesIO(frame)))


def write_dicom(name, pixels, numbers):
    made = pydicom.dcmread(OUT / name)
    compressed = made.file_meta.TransferSyntaxUID == JPEGBaseline8Bit
    values = jpeg_values(made) if compressed else made.pixel_array
    scaled = apply_modality_lut(values, made).astype(float)
    write(numbers, name, scaled)
    if made.SamplesPerPixel == 3:
        write(pixels, name, values)
        return
    low, high = scaled.min(), scaled.max()
    shown = (scaled - low) / (high - low)
    if "WindowCenter" in made:    # two numbers more, far out, show what black and white become
        shown = apply_voi_lut(np.append(scaled, [-1e6, 1e6]), made)
        shown = ((shown[:-2] - shown[-2]) / (shown[-1] - shown[-2])).reshape(scaled.shape)
    if made.PhotometricInterpretation == "MONOCHROME1":
        shown = 1 - shown
    write(pixels, name, np.floor(shown * 255 + 0.5))


def main():
    OUT.mkdir(exist_ok=True)
    for old in OUT.iterdir():
        old.unlink()
    (OUT / "VERSIONS").write_text(f"python {platform.python_version()}\npillow {PIL.__version__}\n"
                                  f"pydicom {pydicom.__version__}\n")
    for name, image, settings in pillow_files():
        image.save(OUT / name, **settings)
    for name, data in text_files():
        (OUT / name).write_bytes(data)
    dicom_files()
    with open(OUT / "pixels.txt", "w") as pixels, open(OUT / "numbers.txt", "w") as numbers:
        for path in sorted(OUT.iterdir()):
            if path.suffix == ".dcm":
                write_dicom(path.name, pixels, numbers)
            elif path.suffix != ".txt" and path.name != "VERSIONS":
                write_pillow(path.name, pixels, numbers)


if __name__ == "__main__":
    main()
