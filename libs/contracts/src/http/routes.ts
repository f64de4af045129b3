import * as flags from "./flags.ts";
import * as keys from "./keys.ts";
import type { RouteContract } from "./route.ts";
import * as sdk from "./sdk.ts";
import * as tenancy from "./tenancy.ts";

/** Every route of the public API. */
export const routes: readonly RouteContract[] = [
  sdk.sdkGetFlags,
  sdk.sdkPostFlags,
  sdk.sdkGetEvaluate,
  sdk.sdkPostEvaluate,
  sdk.sdkStream,
  flags.createFlag,
  flags.listFlags,
  flags.getFlag,
  flags.updateFlag,
  flags.deleteFlag,
  flags.getFlagState,
  flags.updateFlagState,
  tenancy.createEnvironment,
  tenancy.listEnvironments,
  tenancy.getEnvironment,
  keys.issueKey,
  keys.listKeys,
  keys.getKey,
  keys.rotateKey,
  keys.revokeKey,
  tenancy.createOrganization,
  tenancy.listOrganizations,
  tenancy.getOrganization,
  tenancy.updateOrganization,
  tenancy.createUser,
  tenancy.listUsers,
  tenancy.getUser,
  tenancy.createProject,
  tenancy.listProjects,
  tenancy.getProject,
] as unknown as readonly RouteContract[];
