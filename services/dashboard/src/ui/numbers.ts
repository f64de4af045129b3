const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat(undefined, {
  notation: "compact",
  maximumSignificantDigits: 3,
});

/** Returns a number with separators, such as "1,234,567". */
export const count = (value: number): string => whole.format(value);
/** Returns a number in three digits, such as "1.23M". */
export const shortCount = (value: number): string => compact.format(value);
/** Returns a share in percent, such as "12 %". */
export function share(value: number): string {
  return value > 0 && value < 0.01 ? "less than 1 %" : `${whole.format(value * 100)} %`;
}
