import { corsHeaders } from "./cors.ts";

/** Headers of every answer of an endpoint, as a flat list of names and values. */
export const commonHeaders: readonly string[] = [
  ...corsHeaders,
  "X-Content-Type-Options",
  "nosniff",
];
