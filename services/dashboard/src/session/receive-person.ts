import { personTokens } from "./person.ts";
import { readKeys, writeKeys } from "./stored-keys.ts";

/** Signs a tab without keys in as the person whose cookie the browser has, in the first project of the person. */
export async function receivePerson(): Promise<void> {
  if (readKeys(sessionStorage).tokens.length > 0) return;
  const tokens = await personTokens();
  if (tokens.length > 0) writeKeys(sessionStorage, { tokens, current: tokens[0] });
}
