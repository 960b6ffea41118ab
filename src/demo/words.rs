//! Names of people, places and things, for generated rows.

/// What a seller sells.
pub struct Category {
    /// Its name.
    pub name: &'static str,
    /// The second half of the shop names.
    pub shop: &'static str,
    /// Items and their usual prices, in cents.
    pub items: &'static [(&'static str, u64)],
}

/// Every category.
pub const CATEGORIES: &[Category] = &[
    Category {
        name: "books",
        shop: "Books",
        items: &[("novel", 1490), ("cookbook", 2790), ("atlas", 4900), ("poems", 1250), ("comic", 990)],
    },
    Category {
        name: "electronics",
        shop: "Electronics",
        items: &[
            ("headphones", 8900),
            ("keyboard", 6900),
            ("monitor", 22_900),
            ("charger", 2490),
            ("camera", 54_900),
            ("phone", 69_900),
        ],
    },
    Category {
        name: "fashion",
        shop: "Outfitters",
        items: &[
            ("shirt", 3990),
            ("jeans", 7900),
            ("coat", 18_900),
            ("scarf", 2490),
            ("shoes", 9900),
            ("socks", 890),
        ],
    },
    Category {
        name: "garden",
        shop: "Garden",
        items: &[("spade", 3490), ("seeds", 390), ("rose", 1890), ("mower", 24_900), ("gloves", 1290)],
    },
    Category {
        name: "groceries",
        shop: "Foods",
        items: &[("tea", 790), ("coffee", 1390), ("olive oil", 1190), ("honey", 890), ("chocolate", 450)],
    },
    Category {
        name: "home",
        shop: "Living",
        items: &[
            ("lamp", 5900),
            ("chair", 12_900),
            ("table", 29_900),
            ("pan", 4490),
            ("towel", 1690),
            ("clock", 3900),
        ],
    },
    Category {
        name: "sports",
        shop: "Sports",
        items: &[
            ("ball", 2490),
            ("tent", 18_900),
            ("bicycle", 64_900),
            ("bottle", 1490),
            ("racket", 8900),
            ("mat", 2990),
        ],
    },
    Category {
        name: "toys",
        shop: "Toys",
        items: &[("puzzle", 1990), ("bricks", 4990), ("doll", 2990), ("kite", 1790), ("board game", 3490)],
    },
];

/// First halves of shop names.
pub const SHOP_NAMES: &[&str] = &[
    "Acorn",
    "Amber",
    "Anchor",
    "Birch",
    "Bluebird",
    "Cedar",
    "Compass",
    "Copper",
    "Corner",
    "Crescent",
    "Delta",
    "Ember",
    "Falcon",
    "Fern",
    "Harbor",
    "Hazel",
    "Heron",
    "Hilltop",
    "Indigo",
    "Juniper",
    "Lantern",
    "Lighthouse",
    "Linden",
    "Maple",
    "Meadow",
    "Mill",
    "North",
    "Oak",
    "Orchard",
    "Otter",
    "Pebble",
    "Pine",
    "Quarry",
    "Raven",
    "River",
    "Rowan",
    "Saffron",
    "Silver",
    "Sparrow",
    "Summit",
    "Sunday",
    "Thistle",
    "Timber",
    "Valley",
    "Violet",
    "Willow",
];

/// First names.
pub const FIRST_NAMES: &[&str] = &[
    "Ada", "Ahmed", "Aisha", "Alan", "Ana", "Ben", "Carlos", "Chen", "Clara", "Dana", "David", "Elena",
    "Emma", "Farid", "Grace", "Hana", "Hugo", "Ines", "Ivan", "Jan", "Julia", "Kofi", "Lars", "Leila", "Li",
    "Lucia", "Maria", "Marta", "Mei", "Miguel", "Nadia", "Nina", "Noah", "Olga", "Omar", "Paul", "Priya",
    "Rosa", "Sam", "Sara", "Tom", "Vera", "Wei", "Yuki", "Zoe",
];

/// Last names.
pub const LAST_NAMES: &[&str] = &[
    "Ali", "Almeida", "Andersen", "Bauer", "Brown", "Chen", "Costa", "Diaz", "Dubois", "Eriksson", "Fischer",
    "Garcia", "Haddad", "Hansen", "Ivanov", "Jones", "Kato", "Khan", "Kim", "Kowalski", "Larsen", "Lee",
    "Lopez", "Martin", "Mensah", "Meyer", "Moreau", "Nguyen", "Novak", "Okafor", "Olsen", "Patel", "Petrov",
    "Rossi", "Sato", "Schmidt", "Silva", "Singh", "Smith", "Tanaka", "Varga", "Wang", "Weber", "Wilson",
    "Zhang",
];

/// Cities.
pub const CITIES: &[&str] = &[
    "Amsterdam",
    "Athens",
    "Barcelona",
    "Berlin",
    "Bogota",
    "Boston",
    "Cairo",
    "Chicago",
    "Copenhagen",
    "Dakar",
    "Dublin",
    "Hamburg",
    "Hanoi",
    "Helsinki",
    "Istanbul",
    "Kyoto",
    "Lagos",
    "Lima",
    "Lisbon",
    "London",
    "Madrid",
    "Melbourne",
    "Milan",
    "Montreal",
    "Mumbai",
    "Nairobi",
    "Osaka",
    "Oslo",
    "Paris",
    "Porto",
    "Prague",
    "Rome",
    "Santiago",
    "Seoul",
    "Shanghai",
    "Stockholm",
    "Tokyo",
    "Toronto",
    "Vienna",
    "Warsaw",
];

/// Streets.
pub const STREETS: &[&str] = &[
    "Bridge Street",
    "Canal Walk",
    "Castle Hill",
    "Church Lane",
    "Garden Row",
    "High Street",
    "King Street",
    "Market Square",
    "Mill Lane",
    "Park Avenue",
    "Queen Street",
    "River Road",
    "School Lane",
    "Station Road",
    "Victoria Road",
];

/// Carriers.
pub const CARRIERS: &[&str] = &["Bluebox", "City Bike", "Overland", "Parcelway", "Swift Post"];
