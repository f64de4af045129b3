/** The first digits of the two Arabic number systems. */
const arabicZeros = [0x660, 0x6f0];

const latinDigits = (text: string): string =>
  text.normalize("NFKC").replace(/[\u0660-\u0669\u06f0-\u06f9]/g, (digit) => {
    const code = digit.charCodeAt(0);
    return String(code - (arabicZeros.findLast((zero) => zero <= code) ?? 0));
  });

/** Returns the decimal sign of a locale, and the sign that separates thousands. */
function signsOf(locale: string): { decimal: string; group: string | undefined } {
  const parts = new Intl.NumberFormat(locale).formatToParts(1_234_567.5);
  const sign = (type: "decimal" | "group") => parts.find((part) => part.type === type)?.value;
  return { decimal: sign("decimal") ?? ".", group: sign("group") };
}

/** Returns whether the point of a typed number can also separate thousands, such as that of `1.500` in German. */
export const isAmbiguousNumber = (text: string, locale: string): boolean =>
  /\.\d{3}$/.test(latinDigits(text.trim())) && signsOf(locale).group === ".";

/**
 * Reads a typed number with at most one decimal sign: that of the locale, or a point. Returns undefined for everything
 * else and for ambiguous numbers.
 */
export function parseNumber(text: string, locale: string): number | undefined {
  if (isAmbiguousNumber(text, locale)) return undefined;
  const plain = latinDigits(text.trim()).replace(signsOf(locale).decimal, ".");
  return /^-?\d+(\.\d+)?$/.test(plain) ? Number(plain) : undefined;
}

/** Reads a typed percentage. Returns undefined unless it is a number from 0 to 100 with at most two decimals. */
export function parsePercentage(text: string, locale: string): number | undefined {
  const value = parseNumber(text, locale);
  const hasTwoDecimals = (given: number) => Math.abs(given * 100 - Math.round(given * 100)) < 1e-9;
  return value !== undefined && hasTwoDecimals(value) && value >= 0 && value <= 100
    ? value
    : undefined;
}

export const percentageHint = "Enter a number from 0 to 100, with at most two decimals.";
