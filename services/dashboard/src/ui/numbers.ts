import { pageLocale } from "./locale.ts";

const whole = new Intl.NumberFormat(pageLocale, { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat(pageLocale, {
  notation: "compact",
  maximumSignificantDigits: 3,
});

const rounded = new Intl.NumberFormat(pageLocale, { maximumFractionDigits: 1 });

/** Returns a number with separators, such as "1,234,567". */
export const count = (value: number): string => whole.format(value);
/** Returns counts by key, such as "blue 610, red 590". */
export const countsText = (counts: readonly { key: string; evaluations: number }[]): string =>
  counts.map(({ key, evaluations }) => `${key} ${count(evaluations)}`).join(", ");
/** Returns a number in three digits, such as "1.23M". */
export const shortCount = (value: number): string => compact.format(value);
/** Returns a size, such as "12.5 MiB". */
export function bytes(value: number): string {
  if (value < 1024) return value === 1 ? "1 byte" : `${value} bytes`;
  const kibibytes = value / 1024;
  return kibibytes < 1024
    ? `${rounded.format(kibibytes)} KiB`
    : `${rounded.format(kibibytes / 1024)} MiB`;
}
/** Returns a share in percent, such as "12 %". */
export function share(value: number): string {
  return value > 0 && value < 0.01 ? "less than 1 %" : `${whole.format(value * 100)} %`;
}
