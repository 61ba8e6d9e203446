import type { Context, Liquid } from 'liquidjs';

/*
 * Filters and operators of Liquid that look at no limit, or at less than they take: what holds itself a few times over is as large as its event after
 * one step, and larger than any memory after thirty.
 */

type Module = typeof import('liquidjs');

interface Filtering {
    readonly context: Context;
}

type Filter = (this: Filtering, value: unknown, ...rest: unknown[]) => unknown;
type Steps = Generator<unknown, unknown, unknown>;

/** Filters that put a value into a list: the value counts with all that it holds, as it comes out as often as it was put in. */
const HOLDING = ['concat', 'push', 'unshift'];
/** Of these the names of the groups are put in; the items were in the list before. */
const GROUPING = ['group_by', 'group_by_exp'];
const OF_EXPRESSIONS = ['where_exp', 'reject_exp', 'group_by_exp', 'has_exp', 'find_exp', 'find_index_exp'];
/** Items of a list from which on looking through it is a step of its own. */
const LONG = 100;

/** Puts limits where Liquid has none. */
export function boundFilters(liquid: Liquid): void {
    const wrap = (names: readonly string[], wrapped: (filter: Filter) => Filter): void => {
        for (const name of names) {
            liquid.registerFilter(name, wrapped(liquid.filters[name] as Filter));
        }
    };
    wrap(HOLDING, holding);
    wrap(GROUPING, grouping);
    wrap(OF_EXPRESSIONS, stepping);
}

/** The operators, of which one that looks through a long list is a step: one expression may have thousands of them. */
export function boundOperators({ defaultOperators }: Pick<Module, 'defaultOperators'>): Module['defaultOperators'] {
    const contains = defaultOperators.contains as (list: unknown, item: unknown, context: Context) => Steps;
    return {
        ...defaultOperators,
        contains: (list: unknown, item: unknown, context: Context) => {
            if (Array.isArray(list) && list.length >= LONG) {
                context.renderLimit.check(performance.now());
            }
            return contains(list, item, context);
        },
    } as Module['defaultOperators'];
}

function holding(filter: Filter): Filter {
    return function (value, ...rest) {
        charge(rest[0], this.context);
        return filter.call(this, value, ...rest);
    };
}

function grouping(filter: Filter): Filter {
    return function* (this: Filtering, ...args) {
        const groups = (yield* filter.apply(this, args) as Steps) as readonly { readonly name: unknown }[];
        for (const { name } of groups) {
            charge(name, this.context);
        }
        return groups;
    };
}

/** A step for each item, as a loop has them. Liquid asks for the value of the expression once for each. */
function stepping(filter: Filter): Filter {
    return function* (this: Filtering, ...args) {
        const items = filter.apply(this, args) as Steps;
        let item = items.next();
        while (item.done !== true) {
            this.context.renderLimit.check(performance.now());
            item = items.next(yield item.value);
        }
        return item.value;
    };
}

/** Counts all that a value holds, as often as it holds it. It ends where the limit does. */
function charge(value: unknown, { memoryLimit }: Context): void {
    const left = [value];
    while (left.length > 0) {
        const one = left.pop();
        if (typeof one === 'string') {
            memoryLimit.use(one.length);
        } else if (typeof one === 'object' && one !== null) {
            const items: readonly unknown[] = Array.isArray(one) ? one : Object.values(one);
            memoryLimit.use(items.length + 1);
            for (const item of items) {
                left.push(item);
            }
        }
    }
}
