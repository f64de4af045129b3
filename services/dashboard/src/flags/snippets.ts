/** Returns code examples that read a flag. They contain the address of this server, but no key. */
export function snippetsFor(
  flagKey: string,
  origin: string,
): readonly { title: string; code: string }[] {
  const quoted = JSON.stringify(flagKey);
  return [
    {
      title: "Server: @halyard/server-sdk",
      code: `import { createClient } from "@halyard/server-sdk";

const flags = createClient({
  baseUrl: "${origin}",
  serverKey: process.env.HALYARD_READER_KEY,
});
await flags.ready({ timeoutMs: 3_000 });

if (flags.isEnabled(${quoted}, { id: "user-1", country: "DE" })) {
  // The flag is on for this user.
}`,
    },
    {
      title: "Browser: @halyard/browser-sdk",
      code: `import { createClient } from "@halyard/browser-sdk";

const flags = createClient({
  baseUrl: "${origin}",
  clientKey: "hc_…",
  context: { id: "user-1", country: "DE" },
});
await flags.ready({ timeoutMs: 3_000 });

if (flags.isEnabled(${quoted})) {
  // The flag is on for this user.
}`,
    },
    {
      title: "Any language: HTTP",
      code: `curl "${origin}/api/v1/sdk/evaluate?key=${encodeURIComponent(flagKey)}" \\
  -H "Authorization: Bearer $HALYARD_CLIENT_KEY" \\
  -H 'X-User-Context: {"id":"user-1","country":"DE"}'`,
    },
  ];
}
