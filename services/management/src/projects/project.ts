/** A product of an organization that has flags. */
export type Project = {
  id: string;
  organizationId: string;
  name: string;
  /** Raised by every change. */
  version: number;
  createdAt: Date;
  updatedAt: Date;
};
