//! Times as `--to-datetime` takes them, and durations as `--by-duration` does (ISO 8601).

/// Unix milliseconds of `2026-12-01T08:00:00.000`, with `Z`, `+01:00` or nothing (UTC) after it; the time of day may be missing.
pub(super) fn unix_ms(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, ""));
    let mut date = date.splitn(3, '-');
    let (year, month, day) = (
        digits(date.next()?, 4)?,
        digits(date.next()?, 2)?,
        digits(date.next()?, 2)?,
    );
    if !(1..=12).contains(&month) || day < 1 || day > days_of(year, month) {
        return None;
    }
    let (time, offset) = match time.find(['Z', '+', '-']) {
        Some(at) => (&time[..at], zone(&time[at..])?),
        None => (time, 0),
    };
    let time = if time.is_empty() { 0 } else { of_day(time)? };
    Some(days_since_1970(year, month, day) * 86_400_000 + time - offset)
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let right = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    right.then(|| text.parse().ok()).flatten()
}

fn of_day(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut clock = clock.splitn(3, ':');
    let (hour, minute) = (digits(clock.next()?, 2)?, digits(clock.next()?, 2)?);
    let second = clock.next().map_or(Some(0), |second| digits(second, 2))?;
    if hour > 23 || minute > 59 || second > 59 || fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let ms = digits(fraction, fraction.len())? * 1_000 / 10_i64.pow(fraction.len() as u32);
    Some(((hour * 60 + minute) * 60 + second) * 1_000 + ms)
}

fn zone(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits_only: String = text[1..].chars().filter(|c| *c != ':').collect();
    let number = digits(&digits_only, 4)?;
    Some(sign * (number / 100 * 60 + number % 100) * 60_000)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let before = |year: i64| year * 365 + year / 4 - year / 100 + year / 400;
    let months: i64 = (1..month).map(|month| days_of(year, month)).sum();
    before(year - 1) - before(1969) + months + day - 1
}

/// Milliseconds of `P1DT2H3M4.5S`.
pub(super) fn duration_ms(text: &str) -> Option<i64> {
    let rest = text.strip_prefix('P')?;
    let (mut total, mut in_time, mut number) = (0_f64, false, String::new());
    let mut any = false;
    for c in rest.chars() {
        let unit = match (c, in_time) {
            ('0'..='9' | '.', _) => {
                number.push(c);
                continue;
            }
            ('T', false) if number.is_empty() => {
                in_time = true;
                continue;
            }
            ('D', false) => 86_400_000.0,
            ('H', true) => 3_600_000.0,
            ('M', true) => 60_000.0,
            ('S', true) => 1_000.0,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * unit;
        number.clear();
        any = true;
    }
    (any && number.is_empty()).then_some(total.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let known = [
            ("1970-01-01", 0),
            ("1970-01-01T00:00:01", 1_000),
            ("2000-03-01T00:00:00.5", 951_868_800_500),
            ("2026-12-01T02:59:59.999Z", 1_796_093_999_999),
            ("2026-12-01T03:59:59.999+01:00", 1_796_093_999_999),
            ("2026-12-01T01:59-0100", 1_796_093_940_000),
        ];
        for (text, ms) in known {
            assert_eq!(unix_ms(text), Some(ms), "{text}");
        }
        for text in [
            "",
            "today",
            "2026-13-01",
            "2025-02-29",
            "2026-12-01T25:00",
            "2026-12-01T1:0",
            "2026-12-01T01:00+é",
        ] {
            assert_eq!(unix_ms(text), None, "{text}");
        }
    }

    #[test]
    fn durations_are_read() {
        let known = [
            ("P1D", 86_400_000),
            ("PT1.5S", 1_500),
            ("P1DT2H3M4S", 93_784_000),
        ];
        for (text, ms) in known {
            assert_eq!(duration_ms(text), Some(ms), "{text}");
        }
        for text in ["", "P", "PT", "1h", "P1H", "PT1", "P1Y"] {
            assert_eq!(duration_ms(text), None, "{text}");
        }
    }
}
