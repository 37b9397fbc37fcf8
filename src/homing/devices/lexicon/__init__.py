"""The words of a home, Chinese and English, as data; traditional characters and plurals are folded before."""
