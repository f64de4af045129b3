/** A calendar month of UTC, which is the time that a plan's requests are for. */
export type Month = {
  /** `2027-01`; later months have greater names. */
  readonly name: string;
  readonly beganMs: number;
  readonly endsMs: number;
};

/** The month that an instant lies in. */
export function monthOf(instantMs: number): Month {
  const instant = new Date(instantMs);
  const year = instant.getUTCFullYear();
  const month = instant.getUTCMonth();
  return {
    name: instant.toISOString().slice(0, 7),
    beganMs: Date.UTC(year, month, 1),
    endsMs: Date.UTC(year, month + 1, 1),
  };
}
