import type { Environment } from "./environment.ts";

/** A new environment in which some flags of the project have no stored state yet. */
export type EnvironmentFill = {
  environment: Pick<Environment, "id" | "projectId" | "createdAt">;
  organizationId: string;
  /** The user that the first history entries name. */
  createdBy: string;
  /** All flags up to this key have a state in the environment. */
  afterKey: string;
};

/** The part of a flag that its state in a new environment depends on. */
export type ProjectFlag = {
  id: string;
  organizationId: string;
  projectId: string;
  key: string;
  version: number;
  createdAt: Date;
};
