"""Published accuracies (%): the paper's tables; TABLE1 also has figures from the other methods' own papers."""

TABLE1: dict[str, dict[str, str]] = {
    "cifar10": {
        "kmeans": "22.9",
        "jule": "27.2",
        "dec": "30.1",
        "deepcluster": "37.4",
        "dac": "52.2",
        "iic": "61.7",
        "lsdc": "81.7 ± 0.9",
    },
    "cifar100-20": {
        "kmeans": "13.0",
        "jule": "13.7",
        "dec": "18.5",
        "deepcluster": "18.9",
        "dac": "23.8",
        "iic": "25.7",
        "lsdc": "42.3 ± 1.0",
    },
    "stl10": {
        "kmeans": "19.2",
        "jule": "27.7",
        "dec": "35.9",
        "deepcluster": "33.4",
        "dac": "47.0",
        "iic": "59.6",
        "lsdc": "66.4 ± 3.2",
    },
    "mnist": {
        "kmeans": "57.2",
        "jule": "96.4",
        "dec": "84.3",
        "dac": "97.8",
        "iic": "99.2",  # the best sub-head
        "idec": "88.1",
        "imsat": "98.4",
        "vade": "94.5",
        "lsdc": "98.6 ± 0.5",
    },
}
MORE = dict.fromkeys(("idec", "imsat", "vade"), ("cifar10", "mnist"))  # further columns of these image sets

REUTERS: dict[str, dict[str, str]] = {
    "reuters10k": {
        "kmeans": "52.4",
        "imsat": "71.9",
        "dec": "72.2",
        "idec": "75.6",
        "vade": "79.8",
        "finch": "81.5",
        "lsdc": "79.0 ± 4.3",
    }
}

ABLATION: dict[str, dict[str, str]] = {
    "cifar10": {
        "l2": "70.2",
        "cosine": "81.1",
        "knn": "81.7",
        "sne": "81.5",
        "cosine-predictions": "63.7",
        "knn-predictions": "64.7",
        "sne-predictions": "67.0",
        "mixup": "75.3",
        "none": "53.7",
    },
    "cifar100-20": {
        "l2": "26.1",
        "cosine": "34.4",
        "knn": "42.3",
        "sne": "40.4",
        "cosine-predictions": "20.4",
        "knn-predictions": "32.8",
        "sne-predictions": "30.4",
        "mixup": "37.1",
        "none": "35.4",
    },
}

ABLATION_EXTRA: dict[str, dict[str, str]] = {
    "cifar10": {"kmeans-rotnet": "14.3", "knn": "81.7", "no-mse": "80.2", "two-layer": "82.0"},
    "cifar100-20": {"kmeans-rotnet": "9.1", "knn": "40.5", "no-mse": "39.2", "two-layer": "38.6"},
}
