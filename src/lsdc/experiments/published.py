"""Published accuracies (%): the paper's tables 2 and 3, completed from the methods' own papers."""

TABLE1: dict[str, dict[str, str]] = {
    "cifar10": {
        **{"kmeans": "22.9", "jule": "27.2", "dec": "30.1", "deepcluster": "37.4", "dac": "52.2", "iic": "61.7"},
        "lsdc": "81.7 ± 0.9",
    },
    "cifar100-20": {
        **{"kmeans": "13.0", "jule": "13.7", "dec": "18.5", "deepcluster": "18.9", "dac": "23.8", "iic": "25.7"},
        "lsdc": "42.3 ± 1.0",
    },
    "stl10": {
        **{"kmeans": "19.2", "jule": "27.7", "dec": "35.9", "deepcluster": "33.4", "dac": "47.0", "iic": "59.6"},
        "lsdc": "66.4 ± 3.2",
    },
    "mnist": {
        **{"kmeans": "57.2", "jule": "96.4", "dec": "84.3", "dac": "97.8", "iic": "99.2"},  # IIC: the best sub-head
        **{"idec": "88.1", "imsat": "98.4", "vade": "94.5"},
        "lsdc": "98.6 ± 0.5",
    },
}
MORE = dict.fromkeys(("idec", "imsat", "vade"), ("cifar10", "mnist"))  # further columns of these image sets

REUTERS: dict[str, dict[str, str]] = {
    "reuters10k": {
        **{"kmeans": "52.4", "imsat": "71.9", "dec": "72.2", "idec": "75.6", "vade": "79.8", "finch": "81.5"},
        "lsdc": "79.0 ± 4.3",
    }
}
