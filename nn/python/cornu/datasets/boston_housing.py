"""Prices of houses in Boston in the 1970s."""

from .files import ADDRESS, find, read_npz, split_rows


def load_data(path="boston_housing.npz", test_split=0.2, seed=113):
    """(x_train, y_train), (x_test, y_test): (N, 13) and prices in 1,000 dollars."""
    found = read_npz(find(path, ADDRESS + "boston_housing.npz", (
        "f553886a1f8d56431e820c5b82552d9d95cfcb96d1e678153f8839538947dff5"
        if path == "boston_housing.npz" else None)))
    return split_rows(found["x"], found["y"], test_split, seed)
