/** A code example for one kind of application, and the kind of key that it needs. */
export type Snippet = {
  id: string;
  /** The application, such as "Server". */
  title: string;
  /** The package of the SDK. Undefined for plain HTTP. */
  package?: string;
  keyKind: "reader" | "client";
  /** Returns code that reads a flag. It contains the address of this server, but no key. */
  codeFor(flagKey: string, origin: string): string;
};

/** Code examples, one for each kind of application. */
export const snippets: readonly [Snippet, ...Snippet[]] = [
  {
    id: "server",
    title: "Server",
    package: "@halyard/server-sdk",
    keyKind: "reader",
    codeFor: (flagKey, origin) => `import { createClient } from "@halyard/server-sdk";

const flags = createClient({
  baseUrl: "${origin}",
  serverKey: process.env.HALYARD_READER_KEY,
});
await flags.ready({ timeoutMs: 3_000 });

if (flags.isEnabled("${flagKey}", { id: "user-1", country: "DE" })) {
  // The flag is on for this user.
}`,
  },
  {
    id: "browser",
    title: "Browser",
    package: "@halyard/browser-sdk",
    keyKind: "client",
    codeFor: (flagKey, origin) => `import { createClient } from "@halyard/browser-sdk";

const flags = createClient({
  baseUrl: "${origin}",
  clientKey: "hc_…",
  context: { id: "user-1", country: "DE" },
});
await flags.ready({ timeoutMs: 3_000 });

if (flags.isEnabled("${flagKey}")) {
  // The flag is on for this user.
}`,
  },
  {
    id: "react",
    title: "React",
    package: "@halyard/react",
    keyKind: "client",
    codeFor: (flagKey, origin) => `import { HalyardProvider, useFlag } from "@halyard/react";

const options = {
  baseUrl: "${origin}",
  clientKey: "hc_…",
  context: { id: "user-1", country: "DE" },
};

function Example() {
  return useFlag("${flagKey}", false) ? "on" : "off";
}

export const App = () => (
  <HalyardProvider options={options}>
    <Example />
  </HalyardProvider>
);`,
  },
  {
    id: "openfeature-server",
    title: "OpenFeature on a server",
    package: "@halyard/openfeature-server",
    keyKind: "reader",
    codeFor: (flagKey, origin) => `import { HalyardProvider } from "@halyard/openfeature-server";
import { OpenFeature } from "@openfeature/server-sdk";

await OpenFeature.setProviderAndWait(
  new HalyardProvider({
    baseUrl: "${origin}",
    serverKey: process.env.HALYARD_READER_KEY,
  }),
);
const flags = OpenFeature.getClient();

const context = { targetingKey: "user-1", country: "DE" };
if (await flags.getBooleanValue("${flagKey}", false, context)) {
  // The flag is on for this user.
}`,
  },
  {
    id: "openfeature-web",
    title: "OpenFeature in a browser",
    package: "@halyard/openfeature-web",
    keyKind: "client",
    codeFor: (flagKey, origin) => `import { HalyardProvider } from "@halyard/openfeature-web";
import { OpenFeature } from "@openfeature/web-sdk";

await OpenFeature.setContext({ targetingKey: "user-1", country: "DE" });
await OpenFeature.setProviderAndWait(
  new HalyardProvider({ baseUrl: "${origin}", clientKey: "hc_…" }),
);

if (OpenFeature.getClient().getBooleanValue("${flagKey}", false)) {
  // The flag is on for this user.
}`,
  },
  {
    id: "http",
    title: "Any language: HTTP",
    keyKind: "client",
    codeFor: (flagKey, origin) => `curl "${origin}/api/v1/sdk/evaluate?key=${flagKey}" \\
  -H "Authorization: Bearer $HALYARD_CLIENT_KEY" \\
  -H 'X-User-Context: {"id":"user-1","country":"DE"}'`,
  },
];
