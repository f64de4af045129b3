import { createRequire, registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import { useGlobals } from "./globals.ts";

/**
 * Runs test files as plain modules of Node.js, which strips the types as in production. All files of a worker share the
 * modules, as the parts of a service do. By default, Jest evaluates every module again for each test file, in a separate
 * context, and a worker grows to 2.5 GB.
 *
 * Jest has no option for this, but loads the class that imports test files from the path in the option `runtime`.
 */
const require = createRequire(import.meta.url);
const { default: Runtime } = require("jest-runtime") as typeof import("jest-runtime");

const globalsUrl = new URL("./globals.ts", import.meta.url).href;

registerHooks({
  resolve: (specifier, context, nextResolve) =>
    specifier === "@jest/globals"
      ? { url: globalsUrl, shortCircuit: true }
      : nextResolve(specifier, context),
});

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
    useGlobals(this.requireModuleOrMock(path, "@jest/globals"));
    await import(pathToFileURL(path).href);
  }
}
