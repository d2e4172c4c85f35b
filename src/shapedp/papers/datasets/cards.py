"""Origin, citation and licence of every data set, and how the files here differ from the published ones."""

from __future__ import annotations

from shapedp.papers.datasets.base import Card

CIFAR = (
    "A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009)",
    "no formal licence; research use",
    "https://www.cs.toronto.edu/~kriz/cifar.html",
)
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html"
RCV1 = (
    "D. D. Lewis, Y. Yang, T. G. Rose, F. Li, RCV1: A New Benchmark Collection for Text Categorization Research, "
    "JMLR 5 (2004)"
)

_CARDS = (
    Card(
        "mnist",
        "MNIST",
        "Y. LeCun, C. Cortes, C. J. C. Burges, The MNIST database of handwritten digits",
        "usually CC BY-SA 3.0",
        "http://yann.lecun.com/exdb/mnist/",
        "60000 + 10000 images of 28 x 28 pixels, 10 classes.",
    ),
    Card(
        "fashion_mnist",
        "Fashion-MNIST",
        "H. Xiao, K. Rasul, R. Vollgraf, Fashion-MNIST (2017), Zalando Research",
        "MIT",
        "https://github.com/zalandoresearch/fashion-mnist",
        "60000 + 10000 images of 28 x 28 pixels, 10 classes.",
    ),
    Card(
        "adult",
        "Adult (Census Income)",
        "B. Becker, R. Kohavi, Adult (1996), UCI Machine Learning Repository, doi:10.24432/C5XW20",
        "CC BY 4.0",
        "https://archive.ics.uci.edu/dataset/2/adult",
        "Six numbers as they are, then one column per category of adult.names. A missing value is a block of zeros.",
    ),
    Card(
        "california_housing",
        "California housing",
        "R. K. Pace, R. Barry, Sparse Spatial Autoregressions, Statistics & Probability Letters 33 (1997)",
        "freely usable (StatLib)",
        "https://lib.stat.cmu.edu/datasets/houses.zip",
        "Eight features per block group; the target is the median house value in units of 100,000 dollars.",
    ),
    Card(
        "electricity",
        "Electricity (New South Wales, normalised)",
        "M. Harries, Splice-2 comparative evaluation: electricity pricing (1999); normalised by J. Gama",
        "public (OpenML 151)",
        "https://www.openml.org/d/151",
        "45312 half hours in order of time; class 1 is a rising price.",
    ),
    Card(
        "communities_crime",
        "Communities and Crime",
        "M. Redmond, Communities and Crime (2002), UCI Machine Learning Repository",
        "CC BY 4.0",
        "https://archive.ics.uci.edu/dataset/183/communities+and+crime",
        "99 predictors: the 122 published less the 23 with missing values. The five identifiers are no predictors.",
    ),
    Card(
        "tecator",
        "Tecator",
        "H. H. Thodberg / Tecator AB, Tecator meat samples, StatLib (recorded on a Tecator Infratec analyzer)",
        "public domain; redistribution asks that PERMISSION.txt stays with the file",
        "https://lib.stat.cmu.edu/datasets/tecator",
        "100 absorbances of 240 meat samples; the target is fat in percent. The part 'usual' is the usual 215.",
    ),
    Card(
        "boston_housing",
        "Boston housing",
        "D. Harrison, D. L. Rubinfeld, Hedonic prices and the demand for clean air, J. Environ. Econ. Manag. 5 (1978)",
        "freely usable (StatLib)",
        "https://lib.stat.cmu.edu/datasets/boston",
        "Column B encodes race: use this set for comparison with older results only.",
    ),
    Card(
        "wine_quality",
        "Wine quality",
        "P. Cortez, A. Cerdeira, F. Almeida, T. Matos, J. Reis, Modeling wine preferences, "
        "Decision Support Systems 47 (2009)",
        "CC BY 4.0",
        "https://archive.ics.uci.edu/dataset/186/wine+quality",
        "11 measurements; the target is a grade from 0 to 10.",
    ),
    Card(
        "bike_sharing",
        "Bike sharing",
        "H. Fanaee-T, J. Gama, Event labeling combining ensemble detectors and background knowledge (2013)",
        "CC BY 4.0",
        "https://archive.ics.uci.edu/dataset/275/bike+sharing+dataset",
        "The target is the number of rentals; its two summands (casual, registered) are no features.",
    ),
    Card(
        "kddcup99",
        "KDD Cup 1999, 10 % file",
        "S. Hettich, S. D. Bay, The UCI KDD Archive (1999)",
        "CC BY 4.0",
        "http://kdd.ics.uci.edu/databases/kddcup99/kddcup99.html",
        "494021 connections: 38 numbers, then one column per protocol, service and flag.",
    ),
    Card(
        "imdb",
        "IMDb (Large Movie Review)",
        "A. L. Maas et al., Learning Word Vectors for Sentiment Analysis, ACL 2011",
        "research use; the texts belong to their authors",
        "https://ai.stanford.edu/~amaas/data/sentiment/",
        "Word ranks, no raw text, no unlabelled reviews; rows are sorted by class, so shuffle before splitting. "
        "The vocabulary was ranked on the training reviews.",
    ),
    Card(
        "cifar10",
        "CIFAR-10, subset",
        *CIFAR,
        "10000 training and 2000 test images of 32 x 32 x 3, in official order, with 111 and 24 images passed over.",
    ),
    Card("cifar10_full", "CIFAR-10, binary version", *CIFAR, "50000 + 10000 images of 32 x 32 x 3."),
    Card(
        "cifar100",
        "CIFAR-100, classes 3 and 8",
        *CIFAR,
        "600 images each of bear (3) and bicycle (8); training and test images are pooled, order arbitrary.",
    ),
    Card(
        "rcv1",
        "RCV1 (CCAT), small sample",
        RCV1,
        "Reuters agreement; research use",
        "https://leon.bottou.org/projects/sgd",
        "1000 + 500 documents in L. Bottou's preprocessing, whose features are numbered differently from LIBSVM's: "
        "for smoke tests, not for published numbers.",
    ),
    Card(
        "rcv1_train",
        "RCV1 (CCAT), rcv1_train.binary",
        RCV1,
        "Reuters agreement; research use",
        LIBSVM,
        "20242 documents, 47236 features, LIBSVM's preprocessing.",
    ),
    Card(
        "real_sim",
        "real-sim",
        "A. McCallum, SRAA: Simulated/Real/Aviation/Auto UseNet data; prepared by V. Sindhwani for SVMlin",
        "no licence stated; research use",
        LIBSVM,
        "72309 documents, 20958 features, LIBSVM's file.",
    ),
    Card(
        "movielens_1m",
        "MovieLens 1M",
        "F. M. Harper, J. A. Konstan, The MovieLens Datasets: History and Context, ACM TiiS 5 (2015)",
        "GroupLens terms of use: research, no redistribution",
        "https://grouplens.org/datasets/movielens/1m/",
        "1000209 ratings of 3706 movies by 6040 users.",
    ),
)

CARDS = {card.name: card for card in _CARDS}
