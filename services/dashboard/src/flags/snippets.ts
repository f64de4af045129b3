import type { ValueType } from "../api/schema.d.ts";

/** A code example for one kind of application, and the kind of key that it needs. */
export type Snippet = {
  id: string;
  /** The application, such as "Server". */
  title: string;
  /** The package of the SDK. Undefined for plain HTTP. */
  package?: string;
  keyKind: "reader" | "client";
  /** Returns code that reads a flag. It contains the address of this server, but no key. */
  codeFor(flag: FlagToRead, origin: string): string;
};

export type FlagToRead = { readonly key: string; readonly value_type: ValueType };

/** The method of a type, such as `getString`, and what it returns when the flag cannot be read. */
const reading: Readonly<Record<ValueType, { name: string; fallback: string }>> = {
  boolean: { name: "Boolean", fallback: "false" },
  string: { name: "String", fallback: '"fallback"' },
  number: { name: "Number", fallback: "0" },
  object: { name: "Object", fallback: "{}" },
};

/** Returns code that uses the value of a boolean flag, or reads that of a typed one. */
const use = ({ value_type: type }: FlagToRead, isOn: string, value: string): string =>
  type === "boolean"
    ? `if (${isOn}) {
  // The flag is on for this user.
}`
    : `const value = ${value};`;

const hookFor = ({ value_type: type }: FlagToRead): string =>
  type === "boolean" ? "useFlag" : "useValue";

function bodyFor({ key, value_type: type }: FlagToRead): string {
  const { fallback } = reading[type];
  return type === "boolean"
    ? `return useFlag("${key}", ${fallback}) ? "on" : "off";`
    : `return JSON.stringify(useValue("${key}", ${fallback}));`;
}

function openFeature(flag: FlagToRead, client: string, context: string): string {
  const { name, fallback } = reading[flag.value_type];
  const call = `${client}.get${name}Value("${flag.key}", ${fallback}${context})`;
  return use(flag, call, call);
}

const user = '{ id: "user-1", country: "DE" }';

/** Code examples, one for each kind of application. */
export const snippets: readonly [Snippet, ...Snippet[]] = [
  {
    id: "server",
    title: "Server",
    package: "@halyard/server-sdk",
    keyKind: "reader",
    codeFor: (flag, origin) => `import { createClient } from "@halyard/server-sdk";

const flags = createClient({
  baseUrl: "${origin}",
  serverKey: process.env.HALYARD_READER_KEY,
});
await flags.ready({ timeoutMs: 3_000 });

${use(
  flag,
  `flags.isEnabled("${flag.key}", ${user})`,
  `flags.get${reading[flag.value_type].name}("${flag.key}", ${user}, ${reading[flag.value_type].fallback})`,
)}`,
  },
  {
    id: "browser",
    title: "Browser",
    package: "@halyard/browser-sdk",
    keyKind: "client",
    codeFor: (flag, origin) => `import { createClient } from "@halyard/browser-sdk";

const flags = createClient({
  baseUrl: "${origin}",
  clientKey: "hc_…",
  context: { id: "user-1", country: "DE" },
});
await flags.ready({ timeoutMs: 3_000 });

${use(
  flag,
  `flags.isEnabled("${flag.key}")`,
  `flags.get${reading[flag.value_type].name}("${flag.key}", ${reading[flag.value_type].fallback})`,
)}`,
  },
  {
    id: "react",
    title: "React",
    package: "@halyard/react",
    keyKind: "client",
    codeFor: (flag, origin) => `import { HalyardProvider, ${hookFor(flag)} } from "@halyard/react";

const options = {
  baseUrl: "${origin}",
  clientKey: "hc_…",
  context: { id: "user-1", country: "DE" },
};

function Example() {
  ${bodyFor(flag)}
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
    codeFor: (flag, origin) => `import { HalyardProvider } from "@halyard/openfeature-server";
import { OpenFeature } from "@openfeature/server-sdk";

await OpenFeature.setProviderAndWait(
  new HalyardProvider({
    baseUrl: "${origin}",
    serverKey: process.env.HALYARD_READER_KEY,
  }),
);
const flags = OpenFeature.getClient();

const context = { targetingKey: "user-1", country: "DE" };
${openFeature(flag, "await flags", ", context")}`,
  },
  {
    id: "openfeature-web",
    title: "OpenFeature in a browser",
    package: "@halyard/openfeature-web",
    keyKind: "client",
    codeFor: (flag, origin) => `import { HalyardProvider } from "@halyard/openfeature-web";
import { OpenFeature } from "@openfeature/web-sdk";

await OpenFeature.setContext({ targetingKey: "user-1", country: "DE" });
await OpenFeature.setProviderAndWait(
  new HalyardProvider({ baseUrl: "${origin}", clientKey: "hc_…" }),
);

${openFeature(flag, "OpenFeature.getClient()", "")}`,
  },
  {
    id: "http",
    title: "Any language: HTTP",
    keyKind: "client",
    codeFor: (flag, origin) => `curl "${origin}/api/v1/sdk/evaluate?key=${flag.key}" \\
  -H "Authorization: Bearer $HALYARD_CLIENT_KEY" \\
  -H 'X-User-Context: {"id":"user-1","country":"DE"}'`,
  },
];
