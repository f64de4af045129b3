import { registerHooks } from "node:module";

/** Loads TypeScript files as JavaScript, after `strip-types.mjs` has removed their types. */
registerHooks({
  load: (url, context, next) =>
    next(url, url.endsWith(".ts") ? { ...context, format: "module" } : context),
});
