"""Checksums of the files that the loaders read: sha256 of the file and, where it is packed, of its content."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stored:
    """What a file must be: its sha256, and the size and sha256 of what it unpacks to."""

    sha256: str
    size: int
    content_sha256: str


# A file is accepted when its own sum or the sum of its unpacked content agrees: packing again changes the first only.
FILES: dict[str, Stored] = {
    "adult/adult.data.gz": Stored(
        "c7a2b4716a97f930123e0baf879188d701e798172631a654fc703d4b082907f3",
        3974305,
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    ),
    "adult/adult.test.gz": Stored(
        "8a2c1bffa6e7ce5abfa43881ae5e87c4311ebc2b3cd526c9c40a43f19f06f799",
        2003153,
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    ),
    "bike_sharing/day.csv.gz": Stored(
        "061f050342cec42a5b08be22b01dba56f59f5db95058c28ba109208e5b1fa049",
        56837,
        "537e98e2c8b8f53e3094d953f847788b1dc224764a4a1e538b3e1ec4e30dac8a",
    ),
    "bike_sharing/hour.csv.gz": Stored(
        "19f0cf0e9b4b342dab6ec44ec88af3aab164082d3691f9dc076dc92263e073f5",
        1139357,
        "e2041d15e576593a53a605868995ff6c97a7f1b83ceb318483be3f090480e48f",
    ),
    "boston_housing/housing.data.gz": Stored(
        "15978f8d7ec9d6dc0632cf1ed16a9d0e7b3c963798ba53eb038e97f8e18439ae",
        49082,
        "baadf72995725d76efe787b664e1f083388c79ba21ef9a7990d87f774184735a",
    ),
    "california_housing/cal_housing.csv.gz": Stored(
        "7ddc3a11480795cf3a7ef8ea338bba67a15d19685b1238ce3aa5cee81eac2b5d",
        2071597,
        "22765e46e56a449c6e095c53d3c89da5cbd0d8778d94b5667e7c3ed8578f7e8c",
    ),
    "cifar10/cifar10_10k_2k.npz": Stored(
        "e0c794cd5b62d6edb27fcab813d8cb54cb910c1b3524c9a62634720b314fe98d",
        33935718,
        "e0c794cd5b62d6edb27fcab813d8cb54cb910c1b3524c9a62634720b314fe98d",
    ),
    "cifar100/cifar100_classes_3_8.npz": Stored(
        "5966db53eade7cca841818c12f5957fa42cc17ff96877e733441428eae8d0822",
        3414255,
        "5966db53eade7cca841818c12f5957fa42cc17ff96877e733441428eae8d0822",
    ),
    "communities_crime/communities.csv.gz": Stored(
        "8f15366e0a853ab07d8a38e3d7998e2c20bad40d4131928da489c1fff9a7f659",
        1102568,
        "748b3de18ff7f09f0e357a3f2510b043a414f5c30916962eda7e3f78bbe21c07",
    ),
    "electricity/electricity.csv.gz": Stored(
        "fb2895139b562359013e993d74d61ea390a1a2fa195ad883fb824ac1041485aa",
        3091690,
        "1990d7ea200d6a7830e15b009311f0f79ea8f07b1986826d140af9867a98879a",
    ),
    "fashion_mnist/t10k-images-idx3-ubyte.gz": Stored(
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        7840016,
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    ),
    "fashion_mnist/t10k-labels-idx1-ubyte.gz": Stored(
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        10008,
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    "fashion_mnist/train-images-idx3-ubyte.gz": Stored(
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        47040016,
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    ),
    "fashion_mnist/train-labels-idx1-ubyte.gz": Stored(
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        60008,
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    ),
    "imdb/imdb_tokens.npz": Stored(
        "2ce7f9a57782d8dfa9589364559ae12d0980dfbf1721dbac9940c6a4826ce543",
        16071933,
        "2ce7f9a57782d8dfa9589364559ae12d0980dfbf1721dbac9940c6a4826ce543",
    ),
    "imdb/vocab.txt.gz": Stored(
        "81c4c34016ee195046e8a96c19e1bbd4bda4484d13ac540e17c89aaec85235d1",
        552633,
        "3eb20028d3b6d87c523ec030928a33d548f9e4401f796107bb26d4dd3e5d72b3",
    ),
    "kddcup99/kddcup.data_10_percent.gz": Stored(
        "7bfaa8cef1350f72842018c32893e2fa4539d57efbb22f998eb74ecefc3da3b4",
        74889749,
        "f8c8267ebcd9c0ed1fd7d6277fe5bfff8732e9b7db8e61b873542b2a534b6f9a",
    ),
    "mnist/t10k-images-idx3-ubyte.gz": Stored(
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        7840016,
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    ),
    "mnist/t10k-labels-idx1-ubyte.gz": Stored(
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        10008,
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    "mnist/train-images-idx3-ubyte.gz": Stored(
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        47040016,
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    "mnist/train-labels-idx1-ubyte.gz": Stored(
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        60008,
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    "rcv1/rcv1_ccat_small_test.svm.gz": Stored(
        "321b90727f0c78fedc61fe5c3678f63e925fa38423ef8454a6778a4de91f24fd",
        729711,
        "14e7009647e45c38a754e636897738582b7377cfc49e5e89eb5d4c59dea390ac",
    ),
    "rcv1/rcv1_ccat_small_train.svm.gz": Stored(
        "89adaad10ae17984ca46897165efefc01b7d274e42487eab5374c91a3eb072d2",
        1438725,
        "ab10f7f704189aa5755e9d4033d793d1c3d383ba567da1ec4cfef7e5e4862038",
    ),
    "tecator/tecator.csv.gz": Stored(
        "99c045d0d0efc3635213d0c96ef77973f05b1b6ed305d6e2ea7b9d8a2790eb68",
        243415,
        "22a6d0f71931f6178b169905e99ae610e35387aa4d5630b43ea550277e1a8964",
    ),
    "wine_quality/winequality-red.csv.gz": Stored(
        "77c4c53e3dc8371eb8cdd58da0a4a62d8c7a54d981c974db9ae9b238fe5fd43f",
        84199,
        "4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e",
    ),
    "wine_quality/winequality-white.csv.gz": Stored(
        "ff103b10a75a748f5011b351ce4f2cdea731d40ec025b8157940ae140ef7fa89",
        264426,
        "76c3f809815c17c07212622f776311faeb31e87610d52c26d87d6e361b169836",
    ),
}
