import type { References } from "@halyard/evaluation";
import type { Audience } from "./audiences.ts";
import type { Flag } from "./flag.ts";

/** The audiences and flags in memory that a flag refers to, by their keys. */
export class Links {
  readonly audiences: ReadonlyMap<string, Audience>;
  readonly flags: ReadonlyMap<string, Flag>;
  /** Number of flags in the longest chain of requirements. */
  readonly chain: number;
  #references: References | undefined = undefined;

  constructor(audiences: Links["audiences"], flags: Links["flags"]) {
    this.audiences = audiences;
    this.flags = flags;
    let chain = 0;
    for (const { links } of flags.values()) chain = Math.max(chain, links.chain + 1);
    this.chain = chain;
  }

  /** The audiences and flags, compiled at the first use. */
  get references(): References {
    this.#references ??= {
      audiences: compiledOf(this.audiences),
      flags: compiledOf(this.flags),
    };
    return this.#references;
  }

  /** Returns whether both contain the same objects. */
  equals({ audiences, flags }: Links): boolean {
    return haveSameEntries(this.audiences, audiences) && haveSameEntries(this.flags, flags);
  }
}

function compiledOf<T>(map: ReadonlyMap<string, { compiled: T }>): Map<string, T> {
  return new Map([...map].map(([key, { compiled }]) => [key, compiled]));
}

function haveSameEntries<T>(one: ReadonlyMap<string, T>, other: ReadonlyMap<string, T>): boolean {
  return one.size === other.size && [...one].every(([key, value]) => other.get(key) === value);
}

export const noLinks = new Links(new Map(), new Map());
