/** Who may keep an answer, its reader alone, and what it depends on beside its address. */
export const ofrepHeaders: readonly string[] = [
  "Cache-Control",
  "private, no-cache",
  "Vary",
  "Authorization, X-API-Key",
];
