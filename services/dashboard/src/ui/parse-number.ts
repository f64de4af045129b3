/** The first digits of the two Arabic number systems. */
const arabicZeros = [0x660, 0x6f0];

const latinDigits = (text: string): string =>
  text.normalize("NFKC").replace(/[\u0660-\u0669\u06f0-\u06f9]/g, (digit) => {
    const code = digit.charCodeAt(0);
    return String(code - (arabicZeros.findLast((zero) => zero <= code) ?? 0));
  });

/**
 * Reads a typed number with at most one decimal sign: that of the locale, or a point. Returns undefined for everything
 * else and for ambiguous numbers, such as `1.500` where a point also separates thousands.
 */
export function parseNumber(text: string, locale: string): number | undefined {
  const parts = new Intl.NumberFormat(locale).formatToParts(1_234_567.5);
  const sign = (type: "decimal" | "group") => parts.find((part) => part.type === type)?.value;
  const typed = latinDigits(text.trim());
  const isAmbiguous = sign("group") === "." && /\.\d{3}$/.test(typed);
  const plain = typed.replace(sign("decimal") ?? ".", ".");
  return !isAmbiguous && /^-?\d+(\.\d+)?$/.test(plain) ? Number(plain) : undefined;
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
