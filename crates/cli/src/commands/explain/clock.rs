//! Times and durations as people read them.

/// `2026-12-01 02:40:11.123`, UTC.
pub(super) fn moment(unix_ms: u64) -> String {
    let (day, ms) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    let (year, month, day) = civil(day as i64);
    let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
    let (second, ms) = (ms / 1_000 % 60, ms % 1_000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{ms:03}")
}

/// Year, month and day of a day since 1970 in the Gregorian calendar. Years begin in March here, so that the leap day comes last.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// `12 ms`, `2.91 s`, `3 min 20 s`, `2 h 5 min`.
pub(super) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{:.2} s", ms as f64 / 1_000.0),
        10_000..60_000 => format!("{:.1} s", ms as f64 / 1_000.0),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms / 1_000 % 60),
        _ => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_durations() {
        assert_eq!(moment(0), "1970-01-01 00:00:00.000");
        assert_eq!(moment(951_782_400_000), "2000-02-29 00:00:00.000");
        assert_eq!(moment(1_796_093_999_999), "2026-12-01 02:59:59.999");
        let durations = [
            (7, "7 ms"),
            (2_914, "2.91 s"),
            (45_000, "45.0 s"),
            (200_000, "3 min 20 s"),
            (7_500_000, "2 h 5 min"),
        ];
        for (ms, text) in durations {
            assert_eq!(duration(ms), text);
        }
    }
}
