"""The screen in a browser: links and cookies, a terminal for each tab, the page."""
