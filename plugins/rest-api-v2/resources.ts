import Joi from 'joi';
import { describedSchema, type SchemaDescription } from '../../lib/application-schema.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { FIELD_SCHEMAS } from '../../lib/inventory/fields.ts';
import { HOST_FALLBACKS, hostSchema } from '../../lib/inventory/host.ts';
import {
    noteSchema,
    serviceSchema,
    sessionSchema,
    vulnSchema,
    workspaceNoteSchema,
    workspaceSchema,
    workspaceVulnSchema,
} from '../../lib/inventory/resources.ts';
import { EXTRA_FIELDS } from '../../lib/inventory/selection.ts';
import type { Collection, InventoryStore } from '../../lib/inventory/store.ts';
import type { OnWarning } from '../../lib/process-warning.ts';
import { timestampFormat } from '../../lib/timestamp.ts';
import { deletionForms } from './deleted-rows.ts';
import type { Resource } from './handlers.ts';
import type { OwnResource, ResourceRow, RestApiV2Options } from './options.ts';
import { type Fill, rowForms } from './row-forms.ts';

interface ResourceEntry extends Omit<OwnResource, 'store'> {
    /** Undefined where the inventory has no such collection. */
    readonly store: Collection<ResourceRow> | undefined;
    readonly fill?: Fill;
    /** Whether its schema is the one that {@link Collection.listText} means. */
    readonly isStandard?: true;
}

/** What says where all of them are. */
export const PREFIX = 'rest-api-v2 registration: routes.prefix';

/** Where there is no resource, but a page with the time. */
export const BASE = '/base';

/**
 * Every resource, the application's own included.
 *
 * @param onWarning Told of schemas of the application's that leave the types of their fields open.
 * @throws ScanwireError `MISCONFIGURED` for an unknown time zone, a path that is there twice, or one below no resource.
 */
export function resources({ store, timeZone, resources: own = [] }: RestApiV2Options, onWarning: OnWarning): readonly Resource[] {
    const timestamp = timestampFormat(timeZone);
    const byShape = new Map<string, Collection<ResourceRow>>();
    const ofStore = storeEntries(store).map((entry) => ({ ...entry, isStandard: true }) as const);
    const entries: readonly ResourceEntry[] = [...ofStore, ...own];

    const first = entries.length - own.length;
    const ofDeletions = once(() => deletionForms(timestamp));

    return entries.flatMap(({ path, store: rows, fill, isStandard = false, ...schema }, index) => {
        if (rows === undefined) {
            return [];
        }

        const parents = parentsOf(path, byShape);
        if (parents === undefined || byShape.has(shape(path)) || path === BASE) {
            throw wrongPath(index - first, parents === undefined ? `${path} is below no known resource` : `${path} is there twice`);
        }
        const ids = [...Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => name), idName(path)];
        if (new Set(ids).size < ids.length) {
            throw wrongPath(index - first, "must call each id otherwise, its own rows' as well");
        }

        byShape.set(shape(path), rows);
        const forms = once(() =>
            rowForms(describedSchema(schema, `Resource ${path}`, onWarning), timestamp, { fill, extras: extrasOf(rows) }),
        );
        if (!isStandard) {
            // What is wrong with a schema of the application's is said at the start.
            forms();
        }
        const takesText = isStandard && timeZone === 'UTC';
        const option = isStandard ? PREFIX : `rest-api-v2 options: ${pathField(index - first)}`;
        return { path, option, idName: idName(path), schema, rows, parents, forms, deletionForms: ofDeletions, takesText };
    });
}

function once<T>(make: () => T): () => T {
    let made: T | undefined;
    return () => {
        made ??= make();
        return made;
    };
}

function extrasOf({ extras = [] }: Collection<ResourceRow>): SchemaDescription {
    return Joi.object(Object.fromEntries(extras.map((field) => [field, FIELD_SCHEMAS[EXTRA_FIELDS[field]]]))).describe();
}

/** `/workspaces/{workspace_id}/hosts` has rows with a `host_id`. */
function idName(path: string): string {
    const name = path.slice(path.lastIndexOf('/') + 1);
    return `${name.replace(/s$/, '').replaceAll('-', '_')}_id`;
}

function storeEntries(inventory: InventoryStore): readonly ResourceEntry[] {
    const workspace = '/workspaces/{workspace_id}';
    const host = `${workspace}/hosts/{host_id}`;
    return [
        { path: '/workspaces', schema: workspaceSchema, store: inventory.workspaces },
        { path: `${workspace}/hosts`, schema: hostSchema, store: inventory.hosts, fill: HOST_FALLBACKS },
        { path: `${host}/services`, schema: serviceSchema, store: inventory.services },
        { path: `${host}/notes`, schema: noteSchema, store: inventory.notes },
        { path: `${host}/sessions`, schema: sessionSchema, store: inventory.sessions },
        // Without services there is nothing that a vulnerability could be below.
        { path: `${host}/services/{service_id}/vulns`, schema: vulnSchema, store: inventory.services && inventory.vulns },
        { path: `${workspace}/services`, schema: serviceSchema, store: inventory.workspaceServices },
        { path: `${workspace}/notes`, schema: workspaceNoteSchema, store: inventory.workspaceNotes },
        { path: `${workspace}/sessions`, schema: sessionSchema, store: inventory.workspaceSessions },
        { path: `${workspace}/vulns`, schema: workspaceVulnSchema, store: inventory.workspaceVulns },
    ];
}

function pathField(index: number): string {
    return `resources[${index}].path`;
}

function wrongPath(index: number, rule: string): ScanwireError {
    const field = pathField(index);
    return new ScanwireError('MISCONFIGURED', `rest-api-v2 options: ${field} ${rule}`, { field });
}

/** Null for a resource below none, undefined for one below a resource that is not there. */
function parentsOf(path: string, byShape: ReadonlyMap<string, Collection<ResourceRow>>): Collection<ResourceRow> | null | undefined {
    const [, parentPath] = /^(.+)\/\{\w+\}\/[^/]+$/.exec(path) ?? [];
    if (parentPath === undefined) {
        return null;
    }

    return byShape.get(shape(parentPath));
}

/** The path whatever its ids are called. */
function shape(path: string): string {
    return path.replaceAll(/\{\w+\}/g, '{}');
}
