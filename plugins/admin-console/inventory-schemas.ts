import Joi from 'joi';
import { workspaceChangesSchema } from '../../lib/inventory/boundary.ts';
import { exportQuerySchema } from '../../lib/inventory/export.ts';
import { FIELD_SCHEMAS } from '../../lib/inventory/fields.ts';
import { hostSchema } from '../../lib/inventory/host.ts';
import { hostMoveSchema } from '../../lib/inventory/host-moves.ts';
import { hostsQuerySchema } from '../../lib/inventory/host-pages.ts';
import { VERDICTS } from '../../lib/inventory/import-counts.ts';
import { noteSchema, serviceSchema, workspaceSchema, workspaceVulnSchema } from '../../lib/inventory/resources.ts';
import { newWorkspaceNameSchema } from '../../lib/inventory/workspace-names.ts';
import { nameSchema, storableTime } from '../../lib/schema-validation.ts';
import type { OperationSchemas } from './operation-schemas.ts';
import type { OperationName } from './operations.ts';

const { count } = FIELD_SCHEMAS;

const inWorkspace = hostsQuerySchema.extract('workspace');
const anyHost: Joi.ObjectSchema = hostSchema;
const addressSchema = hostsQuerySchema.extract('address').required();
const byName = Joi.object({ name: nameSchema.trim().required().description('Its name') });
const dryRunSchema = Joi.boolean().description('Only says how many hosts that would be');
const removedHostsSchema = Joi.object({ hosts: count.description('How many were removed, or would be') });

const countsSchema: Joi.ObjectSchema = Joi.object(Object.fromEntries(VERDICTS.map((verdict) => [verdict, count]))).required();

type InventoryOperation = Extract<OperationName, `${string}Workspace${string}` | `${string}Host${string}` | 'importScan'>;

/** The schemas of the operations on workspaces, hosts and scans. */
export const inventorySchemas: Readonly<Record<InventoryOperation, OperationSchemas>> = {
    importScan: {
        description: 'Imports a scan, XML of nmap, Metasploit or Nessus or JSON lines of hosts or findings: all hosts of it or none',
        query: Joi.object({
            workspace: nameSchema.trim().required().description('Workspace to import into, made when missing'),
            replace: Joi.boolean().description(
                'The scan is the whole workspace: hosts and what is below them that are not in it are removed',
            ),
            dryRun: Joi.boolean().description('Only says what would be changed'),
        }),
        headers: Joi.object({
            'content-digest': Joi.string().description(
                'SHA-256 of the scan as it is sent, like sha-256=:…: of RFC 9530: where it is another, nothing is imported; one that was imported before is not looked at',
            ),
        }).unknown(),
        response: Joi.object({
            workspace: workspaceSchema.required(),
            hosts: countsSchema,
            services: countsSchema,
            notes: countsSchema.optional(),
            vulns: countsSchema.optional(),
        }).label('Imported'),
    },
    exportWorkspace: {
        description: 'The hosts of a workspace with what is below them, as a file that begins at once',
        query: exportQuerySchema,
        response: Joi.string().description('Of the type that the format has'),
    },
    listWorkspaces: { description: 'All workspaces, oldest first', response: Joi.array().items(workspaceSchema) },
    showWorkspace: {
        description: 'A workspace with how much it holds',
        params: byName,
        response: workspaceSchema
            .keys(Object.fromEntries(['hosts', 'services', 'notes', 'vulns'].map((kind) => [kind, count.allow(null).required()])))
            .label('ShownWorkspace'),
    },
    updateWorkspace: {
        description: 'Changes what a workspace is limited to',
        params: byName,
        payload: workspaceChangesSchema,
        response: workspaceSchema,
    },
    renameWorkspace: {
        description: 'Gives a workspace another name; never to the one that is there from the start',
        params: byName,
        payload: newWorkspaceNameSchema.required(),
        response: workspaceSchema,
    },
    removeWorkspace: {
        description: 'Removes a workspace with all that is in it; never the one that is there from the start',
        params: byName,
        response: removedHostsSchema,
    },
    listHosts: {
        description: 'A page of the hosts of a workspace, oldest first',
        query: hostsQuerySchema,
        response: Joi.object({
            hosts: Joi.array()
                .items(anyHost.keys({ services: Joi.array().items(serviceSchema) }))
                .required(),
            next: count.allow(null).description('`after` of the next page; null after the last'),
        }).label('HostsPage'),
    },
    showHost: {
        description: 'A host with its services, notes and vulnerabilities',
        params: Joi.object({ address: addressSchema }),
        query: Joi.object({ workspace: inWorkspace }),
        response: anyHost
            .keys({
                services: Joi.array().items(serviceSchema).required(),
                notes: Joi.array().items(noteSchema).required(),
                vulns: Joi.array().items(workspaceVulnSchema).required(),
            })
            .label('ShownHost'),
    },
    moveHosts: {
        description: 'Moves hosts into another workspace with all that is below them, all of them or none',
        payload: hostMoveSchema.required(),
        response: Joi.object({ hosts: count.description('How many were moved') }),
    },
    removeHosts: {
        description: 'Removes the hosts of an address, a block or a range from a workspace',
        payload: Joi.object({ workspace: inWorkspace, address: addressSchema, dryRun: dryRunSchema }).required(),
        response: removedHostsSchema,
    },
    expireHosts: {
        description: 'Removes the hosts of a workspace that no import has seen for a while',
        payload: Joi.object({
            workspace: inWorkspace,
            notSeenSince: storableTime().required().description('Those that no import has seen since'),
            dryRun: dryRunSchema,
        }).required(),
        response: removedHostsSchema,
    },
};
