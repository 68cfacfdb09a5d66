/** What Python writes into the page, before its modules. */
declare const DATA: any;
