import { createRequire, registerHooks } from "node:module";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import fc from "fast-check";
import { testSeed } from "../seed.ts";
import { useGlobals } from "./globals.ts";

/**
 * Runs test files as plain modules of Node.js, which strips the types as in production. All files of a worker share the
 * modules, as the parts of a service do, except the helpers of tests. By default, Jest evaluates every module again for
 * each test file, in a separate context, and a worker grows to 2.5 GB.
 *
 * Jest has no option for this, but loads the class that imports test files from the path in the option `runtime`.
 */
const require = createRequire(import.meta.url);
const { default: Runtime } = require("jest-runtime") as typeof import("jest-runtime");

const globalsUrl = new URL("./globals.ts", import.meta.url).href;
const root = new URL("../../../../", import.meta.url).href;

let files = 0;

/** True for the helpers of tests. Their hooks and tests must be registered for each test file that imports them. */
function isTestHelper(url: string): boolean {
  return (
    url.startsWith(root) &&
    /\/test\/.*\.tsx?$/.test(url) &&
    !/\/node_modules\/|\.test\.tsx?$/.test(url)
  );
}

registerHooks({
  resolve: (specifier, context, nextResolve) => {
    if (specifier === "@jest/globals") return { url: globalsUrl, shortCircuit: true };
    const resolved = nextResolve(specifier, context);
    if (!isTestHelper(resolved.url)) return resolved;
    return { ...resolved, url: `${resolved.url}?file=${files}` };
  },
});

fc.configureGlobal({ seed: testSeed });

/** Bounds the set-up at the top of a file, which no limit of a hook bounds. */
const importTimeoutMs = 180_000;

async function importFile(path: string): Promise<void> {
  const imported = new AbortController();
  const { signal } = imported;
  try {
    await Promise.race([
      import(pathToFileURL(path).href),
      delay(importTimeoutMs, undefined, { signal }).then(() => {
        throw new Error(`the set-up of the file took more than ${importTimeoutMs} ms`);
      }),
    ]);
  } finally {
    imported.abort();
  }
}

/** Symbols under which jest-circus keeps the state of a file in the global object. */
const statesOfFiles = ["EVENT_HANDLERS", "JEST_STATE_SYMBOL"];

// biome-ignore lint/style/noDefaultExport: Jest takes its runtime as a default export.
export default class NativeRuntime extends Runtime {
  /** Evaluates Jest's own module of `describe` and `it` again for each file, because it holds the state of one file. */
  override requireInternalModule<T>(path: string): T {
    for (const symbol of Object.getOwnPropertySymbols(globalThis))
      if (statesOfFiles.includes(symbol.description ?? ""))
        Reflect.deleteProperty(globalThis, symbol);
    delete require.cache[path];
    return require(path);
  }

  override unstable_shouldLoadAsEsm(): boolean {
    return true;
  }

  override async unstable_importModule(path: string): Promise<void> {
    files += 1;
    const globals = this.requireModuleOrMock<typeof import("@jest/globals")>(path, "@jest/globals");
    useGlobals(globals);
    try {
      await importFile(path);
    } catch (error) {
      // As a test, because only then do the hooks run that close what the file has opened.
      globals.it("is set up", () => {
        throw error;
      });
    }
  }
}
