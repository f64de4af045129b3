import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
  retainSearchParams,
} from "@tanstack/react-router";
import { readCompareSearch } from "./compare/compare-search.ts";
import { readFlagSearch } from "./flags/flag-search.ts";
import { FlagsPage } from "./flags/flags-page.tsx";
import { readHistorySearch } from "./history/history-search.ts";
import { KeyLayout } from "./shell/key-layout.tsx";
import { NotFound } from "./shell/not-found.tsx";
import { OperatorLayout } from "./shell/operator-layout.tsx";
import { PageError } from "./shell/page-error.tsx";
import { readUsageSearch } from "./usage/usage-search.ts";
import { readDeliverySearch } from "./webhooks/delivery-status.ts";

/** The name of the chosen environment. All pages keep it. */
type EnvironmentSearch = { env?: string | undefined };

const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);

/** The pages of a server key. The first page is in the main bundle; the others are loaded when they are opened. */
const keyRoot = createRootRoute({
  component: KeyLayout,
  notFoundComponent: NotFound,
  validateSearch: (search): EnvironmentSearch => ({ env: text(search.env) }),
  search: { middlewares: [retainSearchParams<EnvironmentSearch>(["env"])] },
});
const under = () => keyRoot;

/** Loads the code of a page when the page is opened. */
const page = lazyRouteComponent;

const flagRoute = createRoute({
  getParentRoute: under,
  path: "/flags/$flagKey",
  component: page(() => import("./flags/flag-page.tsx"), "FlagPage"),
});
const underFlag = () => flagRoute;
const flagTabs = [
  createRoute({
    getParentRoute: underFlag,
    path: "/",
    component: page(() => import("./targeting/targeting-tab.tsx"), "TargetingTab"),
  }),
  createRoute({
    getParentRoute: underFlag,
    path: "/schedule",
    component: page(() => import("./schedules/schedule-tab.tsx"), "ScheduleTab"),
  }),
  createRoute({
    getParentRoute: underFlag,
    path: "/history",
    component: page(() => import("./history/history-tab.tsx"), "HistoryTab"),
  }),
  createRoute({
    getParentRoute: underFlag,
    path: "/settings",
    component: page(() => import("./flags/settings-tab.tsx"), "SettingsTab"),
  }),
] as const;

const keyRoutes = [
  createRoute({
    getParentRoute: under,
    path: "/",
    beforeLoad: () => {
      throw redirect({ to: "/flags" });
    },
  }),
  createRoute({
    getParentRoute: under,
    path: "/flags",
    validateSearch: readFlagSearch,
    component: FlagsPage,
  }),
  flagRoute.addChildren([...flagTabs]),
  createRoute({
    getParentRoute: under,
    path: "/schedules",
    component: page(() => import("./schedules/schedules-page.tsx"), "SchedulesPage"),
  }),
  createRoute({
    getParentRoute: under,
    path: "/compare",
    validateSearch: readCompareSearch,
    component: page(() => import("./compare/compare-page.tsx"), "ComparePage"),
  }),
  createRoute({
    getParentRoute: under,
    path: "/history",
    validateSearch: readHistorySearch,
    component: page(() => import("./history/history-page.tsx"), "HistoryPage"),
  }),
  createRoute({
    getParentRoute: under,
    path: "/webhooks",
    component: page(() => import("./webhooks/webhooks-page.tsx"), "WebhooksPage"),
  }),
  createRoute({
    getParentRoute: under,
    path: "/webhooks/$webhookId",
    validateSearch: readDeliverySearch,
    component: page(() => import("./webhooks/webhook-page.tsx"), "WebhookPage"),
  }),
  createRoute({
    getParentRoute: under,
    path: "/usage",
    validateSearch: readUsageSearch,
    component: page(() => import("./usage/usage-page.tsx"), "UsagePage"),
  }),
  createRoute({
    getParentRoute: under,
    path: "/keys",
    component: page(() => import("./keys/keys-page.tsx"), "KeysPage"),
  }),
] as const;

export function createKeyRouter() {
  return createRouter({
    routeTree: keyRoot.addChildren([...keyRoutes]),
    defaultPreload: "intent",
    defaultErrorComponent: PageError,
    scrollRestoration: true,
  });
}

/** The pages of the operator. */
const operatorRoot = createRootRoute({ component: OperatorLayout, notFoundComponent: NotFound });
const underOperator = () => operatorRoot;
const operatorRoutes = [
  createRoute({
    getParentRoute: underOperator,
    path: "/",
    component: page(() => import("./operator/organizations-page.tsx"), "OrganizationsPage"),
  }),
  createRoute({
    getParentRoute: underOperator,
    path: "/organizations/$organizationId",
    component: page(() => import("./operator/organization-page.tsx"), "OrganizationPage"),
  }),
  createRoute({
    getParentRoute: underOperator,
    path: "/organizations/$organizationId/projects/$projectId",
    component: page(() => import("./operator/project-page.tsx"), "ProjectPage"),
  }),
  createRoute({
    getParentRoute: underOperator,
    path: "/status",
    component: page(() => import("./operator/status-page.tsx"), "StatusPage"),
  }),
] as const;

export function createOperatorRouter() {
  return createRouter({
    routeTree: operatorRoot.addChildren([...operatorRoutes]),
    defaultPreload: "intent",
    defaultErrorComponent: PageError,
  });
}
