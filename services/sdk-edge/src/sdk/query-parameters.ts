import { isWellEncoded, type Refusal, refuse } from "@halyard/service";

/** The parameters of a query string, or why it cannot be read. Each name may be given once. */
export function readQuery(query: string, names: readonly string[]): Map<string, string> | Refusal {
  if (!isWellEncoded(query)) return refuse("VALIDATION_001", "the query string is not valid UTF-8");
  const found = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    if (!names.includes(name)) continue;
    if (found.has(name))
      return refuse("VALIDATION_001", `query parameter /${name} must be given once`);
    found.set(name, value);
  }
  return found;
}
