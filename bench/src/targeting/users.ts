import { countries, plans } from "./targeted-flags.ts";

/** A user: an id and four attributes. The flags use two of them. */
export type User = {
  user_id: string;
  country: string;
  plan: string;
  app_version: string;
  age: number;
};

/** All ids have the same length, so that all requests have the same length. */
const digits = 8;

export function userOf(number: number): User {
  return userNamed(idOf(number), number);
}

export function idOf(number: number): string {
  return `user-${String(number).padStart(digits, "0")}`;
}

/** The combinations repeat late, and do not correlate with the numbers of flags. */
export function userNamed(user_id: string, number: number): User {
  return {
    user_id,
    country: countries[(number * 7) % countries.length] as string,
    plan: plans[Math.floor(number / countries.length) % plans.length] as string,
    app_version: `3.${10 + (number % 80)}.1`,
    age: 18 + (number % 60),
  };
}
