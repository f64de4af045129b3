import { isDeepStrictEqual } from "node:util";
import {
  type CompiledFlag,
  callersDefault,
  compile,
  type EvaluationContext,
  type ValueType,
} from "@halyard/evaluation";
import type { Counts } from "./counts.ts";
import { type Links, noLinks } from "./links.ts";
import { type FlagRules, memberChecks } from "./parse-rules.ts";
import { Variations } from "./variations.ts";

/**
 * A flag in memory. It is compiled at its first evaluation, because an application with thousands of flags uses few of
 * them in one process, and starts faster. When its rules or something that it refers to changes, a new flag replaces it.
 */
export class Flag {
  /** Version of the flag, also of the last change that no evaluation depends on. */
  version: number;
  readonly links: Links;
  /** The type of a typed flag. Undefined for a boolean one, which `isEnabled` checks faster than a text. */
  readonly typedAs: Exclude<ValueType, "boolean"> | undefined;
  /** Evaluations since the last usage report: see `Counts`. */
  on = 0;
  off = 0;
  /**
   * The rules of a boolean flag, or the JSON text of those of a typed flag. Its variations and ranges are many small
   * objects, which need twice the memory of the text (bench `sdk-start`).
   */
  #rules: FlagRules | string;
  #compiled: CompiledFlag | undefined = undefined;
  #variations: Variations | undefined = undefined;

  constructor(rules: FlagRules, links = noLinks) {
    const { value_type: type = "boolean", version } = rules;
    this.version = version;
    this.typedAs = type === "boolean" ? undefined : type;
    this.#rules = type === "boolean" ? rules : JSON.stringify(rules);
    this.links = links;
  }

  /** The rules. Those of a typed flag are parsed at each access, so that they are not kept twice. */
  get rules(): FlagRules {
    return typeof this.#rules === "string" ? JSON.parse(this.#rules) : this.#rules;
  }

  /** Takes rules that differ in their version only. */
  renew(rules: FlagRules): void {
    if (rules.version === this.version) return;
    this.version = rules.version;
    this.#rules = this.typedAs === undefined ? rules : JSON.stringify(rules);
  }

  get compiled(): CompiledFlag {
    this.#compiled ??= compile(this.rules, this.links.references);
    return this.#compiled;
  }

  /** Returns the key of the first required flag that has another value. */
  unmetRequirement(context: EvaluationContext): string | undefined {
    const unmet = this.compiled.requirements?.find(({ unmet: { holds } }) => holds(context));
    return unmet?.requirement.flag;
  }

  /** The variations of a typed flag. */
  get variations(): Variations {
    this.#variations ??= new Variations(this.rules, this.compiled);
    return this.#variations;
  }

  /** Counts an evaluation of a boolean flag. */
  count(value: boolean): void {
    if (value) this.on += 1;
    else this.off += 1;
  }

  /** Returns the value of a variation and counts the evaluation; undefined for the caller's default. */
  take(index: number): unknown {
    if (index !== callersDefault) return this.variations.take(index);
    this.off += 1;
    return undefined;
  }

  /** Returns the evaluations since the last call, and sets them to zero. Undefined if there are none. */
  takeCounts(): Counts | undefined {
    const { on, off } = this;
    const variations = this.#variations?.takeCounts();
    if (on === 0 && off === 0 && (variations === undefined || variations.size === 0))
      return undefined;
    this.on = 0;
    this.off = 0;
    return { on, off, ...(variations !== undefined && { variations }) };
  }
}

/** Returns whether two states of a flag evaluate alike. The version also rises with changes of names, for example. */
export function haveSameSettings(a: FlagRules, b: FlagRules): boolean {
  return settings.every((name) => a[name] === b[name] || isDeepStrictEqual(a[name], b[name]));
}

const { version: _, ...settingChecks } = memberChecks;
const settings = Object.keys(settingChecks) as (keyof typeof settingChecks)[];
