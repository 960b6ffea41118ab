//! Sellers, buyers and orders: rows of a marketplace, one by one.
//!
//! Every row is a function of its number (and of how many orders there are), so a table is made by
//! counting, in no memory to speak of, and two runs make the same marketplace.

use super::calendar::{Calendar, DAYS, FIRST_DAY};
use super::random::{Random, Skew};
use super::words::{CARRIERS, CATEGORIES, CITIES, FIRST_NAMES, LAST_NAMES, SHOP_NAMES, STREETS};
use crate::value::Value;

/// Order numbers have twelve digits, as the layout of their rowkeys wants.
pub const FIRST_ORDER: u64 = 240_000_000_001;

const ORDERS_PER_SELLER: u64 = 200;
const ORDERS_PER_BUYER: u64 = 8;
const BUYERS_PER_CUSTOMER: u64 = 3;

const SELLERS: u64 = 1;
const BUYERS: u64 = 2;
const ORDERS: u64 = 3;
const PRICES: u64 = 4;

/// A marketplace of a certain size.
pub struct Market {
    orders: u64,
    sellers: Skew,
    buyers: Skew,
    calendar: Calendar,
}

/// How many rows its tables have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Sellers.
    pub sellers: u64,
    /// Buyers.
    pub buyers: u64,
    /// Customers: each is a household or a firm of some buyers.
    pub customers: u64,
    /// Orders.
    pub orders: u64,
}

impl Sizes {
    /// The sizes that fit so many orders.
    pub fn of(orders: u64) -> Sizes {
        let sellers = (orders / ORDERS_PER_SELLER).max(20);
        let buyers = (orders / ORDERS_PER_BUYER).max(50);
        Sizes { sellers, buyers, customers: buyers / BUYERS_PER_CUSTOMER, orders }
    }
}

impl Market {
    /// The marketplace of these sizes.
    pub fn new(sizes: Sizes) -> Market {
        Market {
            orders: sizes.orders,
            sellers: Skew::new(sizes.sellers, 0.8),
            buyers: Skew::new(sizes.buyers, 0.5),
            calendar: Calendar::new(sizes.orders),
        }
    }

    /// The seller who has `rank` by orders; 1 has the most.
    pub fn seller_ranked(&self, rank: u64) -> u64 {
        self.sellers.ranked(rank)
    }

    /// The buyer who has `rank` by orders; 1 has the most.
    pub fn buyer_ranked(&self, rank: u64) -> u64 {
        self.buyers.ranked(rank)
    }

    /// A row of `sellers`, `n` from 1.
    pub fn seller(n: u64) -> Vec<Value> {
        let mut random = Random::of(SELLERS, n);
        let category = &CATEGORIES[category_of(n)];
        let name = format!("{} {}", random.pick(SHOP_NAMES), category.shop);
        let stars = 30 + random.below(21);
        let since = FIRST_DAY - random.below(3000) as i32;
        vec![
            number(n),
            name.into(),
            category.name.into(),
            (*random.pick(CITIES)).into(),
            Value::Decimal(stars.into(), 1),
            Value::Date(since),
        ]
    }

    /// A row of `buyers`, `n` from 1.
    pub fn buyer(sizes: Sizes, n: u64) -> Vec<Value> {
        let mut random = Random::of(BUYERS, n);
        let (first, last) = (*random.pick(FIRST_NAMES), *random.pick(LAST_NAMES));
        let email = format!("{}.{}{n}@example.com", first.to_lowercase(), last.to_lowercase());
        let since = FIRST_DAY - random.below(2000) as i32;
        vec![
            number(n),
            number(customer_of(sizes, n)),
            format!("{first} {last}").into(),
            email.into(),
            (*random.pick(CITIES)).into(),
            Value::Date(since),
        ]
    }

    /// A row of `orders`, `n` from 0. Later orders have greater numbers.
    pub fn order(&self, sizes: Sizes, n: u64) -> Vec<Value> {
        let mut random = Random::of(ORDERS, n);
        let seconds = self.calendar.seconds(n, &mut random);
        let seller = self.sellers.draw(&mut random);
        let buyer = self.buyers.draw(&mut random);
        let (item, price) = item(seller, &mut random);
        let quantity = 1 + random.below(5) * random.below(5) / 8;
        let age_days = i64::from(FIRST_DAY + DAYS) - seconds / 86_400;
        let status = status(age_days, &mut random);
        let delivered = matches!(status, "delivered" | "returned");
        let took = 86_400 + random.below(6 * 86_400) as i64;
        let street = format!("{} {}", random.pick(STREETS), 1 + random.below(180));
        vec![
            number(FIRST_ORDER + n),
            number(buyer),
            number(customer_of(sizes, buyer)),
            number(seller),
            timestamp(seconds),
            status.into(),
            item.into(),
            number(quantity),
            Value::Decimal((price * quantity).into(), 2),
            street.into(),
            (*random.pick(CITIES)).into(),
            (*random.pick(CARRIERS)).into(),
            if delivered { timestamp(seconds + took) } else { Value::Null },
        ]
    }

    /// The number of an order somewhere in the middle.
    pub fn some_order(&self) -> u64 {
        FIRST_ORDER + self.orders * 5 / 8
    }
}

fn number(n: u64) -> Value {
    Value::Int(n as i64)
}

fn timestamp(seconds: i64) -> Value {
    Value::Timestamp(seconds * 1_000_000)
}

fn category_of(seller: u64) -> usize {
    Random::of(SELLERS, !seller).below(CATEGORIES.len() as u64) as usize
}

/// The customer a buyer belongs to, from 1.
pub fn customer_of(sizes: Sizes, buyer: u64) -> u64 {
    1 + buyer % sizes.customers
}

/// Something the seller has, and its price in cents: every seller has a price of their own.
fn item(seller: u64, random: &mut Random) -> (&'static str, u64) {
    let items = CATEGORIES[category_of(seller)].items;
    let at = random.below(items.len() as u64);
    let (name, cents) = items[at as usize];
    let price = cents * (85 + Random::of(PRICES, seller ^ (at << 40)).below(31)) / 100;
    (name, price)
}

fn status(age_days: i64, random: &mut Random) -> &'static str {
    let percent = random.below(100);
    match (age_days, percent) {
        (.., 0..3) => "cancelled",
        (..3, 3..35) => "open",
        (..3, _) => "paid",
        (..10, 3..20) => "paid",
        (..10, _) => "shipped",
        (_, 3..8) => "returned",
        _ => "delivered",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_marketplace_every_time() {
        let sizes = Sizes::of(1000);
        let (a, b) = (Market::new(sizes), Market::new(sizes));
        assert!((0..1000).all(|n| a.order(sizes, n) == b.order(sizes, n)));
        assert_eq!(Market::seller(7), Market::seller(7));
        assert_eq!(Market::buyer(sizes, 7), Market::buyer(sizes, 7));
    }

    #[test]
    fn orders_name_buyers_and_sellers_that_exist() {
        let sizes = Sizes::of(1000);
        let market = Market::new(sizes);
        for n in 0..1000 {
            let row = market.order(sizes, n);
            let (Value::Int(buyer), Value::Int(seller)) = (&row[1], &row[3]) else { panic!("{row:?}") };
            assert!((1..=sizes.buyers as i64).contains(buyer));
            assert!((1..=sizes.sellers as i64).contains(seller));
        }
    }
}
