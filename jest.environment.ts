import vm from "node:vm";
import { TestEnvironment } from "jest-environment-node";

/**
 * Jest compiles every module again for each test file. V8 compiles a module several times faster with the code cache
 * of its first compilation, so each worker keeps these caches in memory. Jest has no option for them; this module
 * therefore replaces the two entry points of `node:vm` that Jest calls. A worker loads this module once.
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
  if (data !== undefined) return compileFunction(code, params, { ...options, cachedData: data });
  const compiled = compileFunction(code, params, { ...options, produceCachedData: true });
  if (compiled.cachedData !== undefined)
    functions.set(filename, { code, data: compiled.cachedData });
  return compiled;
};

/** The types of Node.js lack this method. */
function codeCacheOf(module: object): Buffer {
  return (module as { createCachedData(): Buffer }).createCachedData();
}

class CachedSourceTextModule extends SourceTextModule {
  constructor(code: string, options: vm.SourceTextModuleOptions = {}) {
    const { identifier = "" } = options;
    const data = cached(modules, identifier, code);
    super(code, data === undefined ? options : { ...options, cachedData: data });
    if (data === undefined) modules.set(identifier, { code, data: codeCacheOf(this) });
  }
}

Object.assign(vm, {
  compileFunction: compileFunctionCached,
  SourceTextModule: CachedSourceTextModule,
});

// biome-ignore lint/style/noDefaultExport: Jest takes its environment as a default export.
export default TestEnvironment;
