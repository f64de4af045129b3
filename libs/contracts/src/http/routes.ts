import * as changes from "./changes.ts";
import * as flags from "./flags.ts";
import * as history from "./history.ts";
import * as keys from "./keys.ts";
import * as me from "./me.ts";
import * as ofrep from "./ofrep.ts";
import * as operators from "./operators.ts";
import type { RouteContract } from "./route.ts";
import * as schedules from "./schedules.ts";
import * as sdk from "./sdk.ts";
import * as status from "./status.ts";
import * as tenancy from "./tenancy.ts";
import * as usage from "./usage.ts";
import * as webhooks from "./webhooks.ts";

/** Every route of the public API. */
export const routes: readonly RouteContract[] = [
  sdk.sdkGetFlags,
  sdk.sdkPostFlags,
  sdk.sdkGetValues,
  sdk.sdkPostValues,
  sdk.sdkGetEvaluate,
  sdk.sdkPostEvaluate,
  sdk.sdkStream,
  sdk.sdkRuleset,
  sdk.sdkRulesetStream,
  sdk.sdkReportUsage,
  ofrep.ofrepEvaluateFlags,
  ofrep.ofrepEvaluateFlag,
  ofrep.ofrepStream,
  flags.createFlag,
  flags.listFlags,
  flags.getFlag,
  flags.updateFlag,
  flags.updateFlags,
  flags.deleteFlag,
  usage.getFlagUsage,
  flags.getFlagState,
  flags.updateFlagState,
  flags.explainFlag,
  schedules.setSchedule,
  schedules.getSchedule,
  schedules.clearSchedule,
  schedules.listSchedules,
  history.getHistory,
  history.rollBack,
  changes.listChanges,
  changes.streamChanges,
  webhooks.createWebhook,
  webhooks.listWebhooks,
  webhooks.getWebhook,
  webhooks.updateWebhook,
  webhooks.deleteWebhook,
  webhooks.testWebhook,
  webhooks.listDeliveries,
  webhooks.getDelivery,
  webhooks.redeliver,
  operators.listOperators,
  usage.getUsage,
  usage.listUsageDays,
  usage.listFlagTraffic,
  usage.listReaders,
  tenancy.createEnvironment,
  tenancy.listEnvironments,
  tenancy.getEnvironment,
  tenancy.updateEnvironment,
  tenancy.deleteEnvironment,
  me.getMe,
  keys.issueKey,
  keys.listKeys,
  keys.getKey,
  keys.rotateKey,
  keys.revokeKey,
  status.getStatus,
  tenancy.listPlans,
  tenancy.createOrganization,
  tenancy.listOrganizations,
  tenancy.getOrganization,
  tenancy.updateOrganization,
  tenancy.deleteOrganization,
  tenancy.createUser,
  tenancy.listUsers,
  tenancy.getUser,
  tenancy.updateUser,
  tenancy.deleteUser,
  tenancy.createProject,
  tenancy.listProjects,
  tenancy.getProject,
  tenancy.updateProject,
  tenancy.deleteProject,
] as unknown as readonly RouteContract[];
