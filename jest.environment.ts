import vm from "node:vm";
import { TestEnvironment } from "jest-environment-node";

/**
 * Caches compiled modules. Jest compiles every module again for each test file. V8 compiles a module several times
 * faster with the code cache of its first compilation, so each worker keeps these caches in memory. Jest has no option
 * for this. This module therefore replaces the two functions of `node:vm` that Jest calls. A worker loads it once.
 */
type CodeCache = Map<string, { code: string; data: Buffer }>;

const functions: CodeCache = new Map();
const modules: CodeCache = new Map();
const { compileFunction, SourceTextModule } = vm;

function cached(cache: CodeCache, name: string, code: string): Buffer | undefined {
  const entry = cache.get(name);
  return entry?.code === code ? entry.data : undefined;
}

const compileFunctionCached: typeof vm.compileFunction = (code, params, options = {}) => {
  const { filename = "" } = options;
  const data = cached(functions, filename, code);
  if (data !== undefined) {
    const compiled = compileFunction(code, params, { ...options, cachedData: data });
    if (compiled.cachedDataRejected === true) functions.delete(filename);
    return compiled;
  }
  const compiled = compileFunction(code, params, { ...options, produceCachedData: true });
  if (compiled.cachedData !== undefined)
    functions.set(filename, { code, data: compiled.cachedData });
  return compiled;
};

/** Returns the code cache of a module. The types of Node.js lack this method. */
function codeCacheOf(module: object): Buffer {
  return (module as { createCachedData(): Buffer }).createCachedData();
}

/** Compiles a module. V8 rejects the cache after a change of its flags, such as `--expose-gc` in a test. */
function compileModule(code: string, options: vm.SourceTextModuleOptions = {}): object {
  const { identifier = "" } = options;
  const data = cached(modules, identifier, code);
  if (data !== undefined) {
    try {
      return new SourceTextModule(code, { ...options, cachedData: data });
    } catch {
      modules.delete(identifier);
    }
  }
  const module = new SourceTextModule(code, options);
  modules.set(identifier, { code, data: codeCacheOf(module) });
  return module;
}

Object.assign(vm, {
  compileFunction: compileFunctionCached,
  SourceTextModule: new Proxy(SourceTextModule, {
    construct: (_, [code, options]) => compileModule(code, options),
  }),
});

// biome-ignore lint/style/noDefaultExport: Jest takes its environment as a default export.
export default TestEnvironment;
