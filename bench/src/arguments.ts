import { parseArgs } from "node:util";

/** What was asked for on the command line. */
export type Arguments = {
  help: boolean;
  quick: boolean;
  save: boolean;
  profile: boolean;
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
      profile: { type: "boolean", default: false },
    },
  });
  if (values.quick && values.save)
    throw new Error(
      "--quick only shows that the benchmarks work; its figures are not worth saving",
    );
  return { ...values, names: positionals };
}
