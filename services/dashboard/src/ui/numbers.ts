const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat(undefined, {
  notation: "compact",
  maximumSignificantDigits: 3,
});
const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 0 });

/** Returns a number with separators, such as "1,234,567". */
export const count = (value: number): string => whole.format(value);
/** Returns a number in three digits, such as "1.23M". */
export const shortCount = (value: number): string => compact.format(value);
export const share = (value: number): string => percent.format(value);
