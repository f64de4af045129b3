import { parseArgs } from "node:util";

/** Command line arguments. */
export type Arguments = {
  help: boolean;
  quick: boolean;
  save: boolean;
  names: readonly string[];
};

export function readArguments(given: readonly string[]): Arguments {
  const { values, positionals } = parseArgs({
    args: [...given],
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h", default: false },
      quick: { type: "boolean", default: false },
      save: { type: "boolean", default: false },
    },
  });
  if (values.quick && values.save)
    throw new Error(
      "--quick figures mean nothing and are not worth saving; remove --quick or --save",
    );
  return { ...values, names: positionals };
}
