import {
  categoryOf,
  type OperatorCategory,
  type OperatorName,
  operatorNames,
} from "./operator-names.ts";

/** An operator as it is shown to whoever writes rules. */
export type Operator = {
  readonly name: OperatorName;
  readonly category: OperatorCategory;
  readonly description: string;
  readonly example: string;
};

const texts: { readonly [name in OperatorName]: Pick<Operator, "description" | "example"> } = {
  equals: {
    description: "The attribute is this text, in upper or lower case.",
    example: "plan equals pro",
  },
  not_equals: {
    description:
      "The attribute is there and is not this text, in upper or lower case; of a list, no element is.",
    example: "plan not_equals free",
  },
  contains: {
    description: "This text occurs in the attribute, in upper or lower case.",
    example: "user_agent contains firefox",
  },
  not_contains: {
    description:
      "The attribute is there and this text does not occur in it, in upper or lower case; of a list, in no element.",
    example: "email not_contains +test",
  },
  starts_with: {
    description: "The attribute begins with this text, in upper or lower case.",
    example: "path starts_with /checkout",
  },
  ends_with: {
    description: "The attribute ends with this text, in upper or lower case.",
    example: "email ends_with @example.com",
  },
  matches_regex: {
    description:
      "This regular expression (RE2 syntax) matches somewhere in the attribute. Case matters unless it begins with (?i); ^ and $ tie it to beginning and end.",
    example: "email matches_regex ^[a-z]+@example\\.(com|org)$",
  },
  in: {
    description:
      "The attribute is one of these, in upper or lower case. The list is an array, or a text with commas.",
    example: "country in DE,AT,CH",
  },
  not_in: {
    description:
      "The attribute is there and is none of these, in upper or lower case. The list is an array, or a text with commas.",
    example: "country not_in US,CA",
  },
  gt: {
    description: "The attribute is a number above this one, or a date-time after this one.",
    example: "age gt 17",
  },
  gte: {
    description: "The attribute is this number or above, or this date-time or after.",
    example: "signed_up_at gte 2027-01-01T00:00:00Z",
  },
  lt: {
    description: "The attribute is a number below this one, or a date-time before this one.",
    example: "cart_total lt 99.90",
  },
  lte: {
    description: "The attribute is this number or below, or this date-time or before.",
    example: "trial_ends_at lte 2027-06-30T23:59:59+02:00",
  },
  semver_eq: {
    description:
      "The attribute is this version; 1.2 means 1.2.0, and build metadata does not count.",
    example: "app_version semver_eq 2.3.0",
  },
  semver_gt: {
    description: "The attribute is a later version than this one.",
    example: "app_version semver_gt 2.3.0",
  },
  semver_gte: {
    description: "The attribute is this version or a later one.",
    example: "app_version semver_gte 2.3.0",
  },
  semver_lt: {
    description:
      "The attribute is an earlier version than this one; a pre-release comes before its release.",
    example: "app_version semver_lt 3.0.0-rc.1",
  },
  semver_lte: {
    description: "The attribute is this version or an earlier one.",
    example: "app_version semver_lte 2.9",
  },
};

/** All operators, those of a category together. */
export const operators: readonly Operator[] = operatorNames.map((name) => ({
  name,
  category: categoryOf(name),
  ...texts[name],
}));
